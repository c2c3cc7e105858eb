#include "board/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "board/clock.h"
#include "board/stop_signal.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr int64_t kRetryNs = 10'000'000;

bool is_fifo(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISFIFO(found.st_mode);
}

Status nobody_reads(const std::string& what, const std::string& path, double limit_s) {
  char limit[32];
  std::snprintf(limit, sizeof limit, "%g", limit_s);
  return {StatusCode::kIo,
          what + " " + path + ": a FIFO that nobody has opened for reading within " + limit + " s"};
}

}  // namespace

Status open_output(const std::string& what, const std::string& path, int flags, int* fd,
                   double reader_limit_s) {
  const int64_t give_up_ns = board_ns() + static_cast<int64_t>(reader_limit_s * 1e9);
  while (true) {
    // A blocking open of a FIFO would wait for a reader for ever.
    *fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0644);
    if (*fd >= 0) break;
    if (errno != ENXIO || !is_fifo(path))
      return system_error(what + " " + path + ": cannot be opened");
    if (stop_requested())
      return {StatusCode::kInterrupted, what + " " + path + ": interrupted while nobody reads it"};
    if (board_ns() >= give_up_ns) return nobody_reads(what, path, reader_limit_s);
    sleep_until(std::min(board_ns() + kRetryNs, give_up_ns));
  }
  ::fcntl(*fd, F_SETFL, ::fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
  return Status::ok();
}

Status output_error(const std::string& what, const std::string& path, int error_number) {
  const Status status = system_error(what + " " + path + ": cannot be written", error_number);
  if (status.code() != StatusCode::kNoSpace) return status;
  return {status.code(), status.message() + "; make room, or name a file on another disk"};
}

}  // namespace opjoule
