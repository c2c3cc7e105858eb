// `medium-sim run`: puts itself under the filter, hands the listener to `medium-sim serve`,
// measures what a trapped call costs, and becomes the command.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/output.h"
#include "loader/system_error.h"
#include "medium-sim/commands.h"
#include "medium-sim/descriptor_passing.h"
#include "medium-sim/filter.h"

namespace opjoule {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotStarted = 126;
constexpr int kTrials = 31;

Status connect_to(const std::string& path, int* fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return {StatusCode::kBadInput, "--socket " + path + ": the path is too long"};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  *fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (::connect(*fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return Status::ok();
  return system_error("no medium-sim serve at " + path);
}

bool answered(int socket) {
  std::string text;
  int fd = -1;
  return receive_message(socket, &text, &fd);
}

// Median time of a trapped call that waits for nothing [ns].
int64_t round_trip_ns() {
  std::vector<int64_t> trials;
  for (int i = 0; i < kTrials; ++i) {
    const int64_t start_ns = board_ns();
    static_cast<void>(::fsync(-1));
    trials.push_back(board_ns() - start_ns);
  }
  std::nth_element(trials.begin(), trials.begin() + kTrials / 2, trials.end());
  return trials[kTrials / 2];
}

// Until `serve` watches this process.
Status introduce(int socket) {
  const Status no_answer{StatusCode::kIo, "medium-sim serve ended"};
  const DescriptorRange synced = synced_descriptors();
  int listener = -1;
  const Status filter = install_filter(synced, &listener);
  const std::string range = std::to_string(synced.first) + " " + std::to_string(synced.end) + " ";
  const bool sent = send_message(socket, range + filter.message(), listener);
  if (listener >= 0) ::close(listener);
  if (!sent || !answered(socket)) return no_answer;
  if (!filter.is_ok()) return Status::ok();
  if (!send_message(socket, std::to_string(round_trip_ns())) || !answered(socket)) return no_answer;
  return Status::ok();
}

}  // namespace

int medium_run_command(const MediumRunOptions& options) {
  int socket = -1;
  Status status = connect_to(options.socket, &socket);
#ifdef PR_SET_PTRACER
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // Yama: `serve` may hold this process
#endif
  if (status.is_ok()) status = introduce(socket);
  if (!status.is_ok()) return report_failure(status, kMediumSim);
  ::setenv(kMediumVariable, options.socket.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : options.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int code = errno == ENOENT ? kNotFound : kNotStarted;
  report_failure(system_error(options.command.front() + ": cannot be started"), kMediumSim);
  return code;
}

}  // namespace opjoule
