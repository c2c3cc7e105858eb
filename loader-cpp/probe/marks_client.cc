#include "probe/marks_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "board/clock.h"
#include "board/proc_file.h"
#include "loader/system_error.h"
#include "probe/marks_address.h"

namespace opjoule {

Status MarksClient::connect(const std::string& path, std::unique_ptr<MarksClient>* out) {
  MarksAddress address;
  if (Status status = address.set(path); !status.is_ok()) return status;
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address.get(), MarksAddress::kSize) != 0) {
    Status status = system_error("marks socket " + path + ": no probe serves it");
    if (fd >= 0) ::close(fd);
    return status;
  }
  out->reset(new MarksClient(fd, path));
  return Status::ok();
}

MarksClient::~MarksClient() { ::close(fd_); }

Status MarksClient::send(std::string_view lines) {
  while (!lines.empty()) {
    const ssize_t sent = ::send(fd_, lines.data(), lines.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return system_error("marks socket " + path_ + ": the probe has gone");
    lines.remove_prefix(static_cast<size_t>(sent));
  }
  return Status::ok();
}

Status MarksClient::sync(double limit_s, uint64_t* taken) {
  if (Status status = send("sync\n"); !status.is_ok()) return status;
  const int64_t until_ns = board_ns() + static_cast<int64_t>(limit_s * 1e9);
  std::string answer;
  while (answer.empty() || answer.back() != '\n') {
    pollfd polled{fd_, POLLIN, 0};
    const int64_t left_ms = std::max<int64_t>((until_ns - board_ns()) / 1'000'000, 0);
    if (::poll(&polled, 1, static_cast<int>(left_ms)) == 0)
      return {StatusCode::kIo, "marks socket " + path_ + ": the probe does not answer"};
    char part[64];
    const ssize_t count = ::read(fd_, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {StatusCode::kIo, "marks socket " + path_ + ": the probe has gone"};
    answer.append(part, static_cast<size_t>(count));
  }
  *taken = number_after(answer, "ok ");
  return Status::ok();
}

}  // namespace opjoule
