#include "board/settle.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "board/clock.h"
#include "board/stop_signal.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr int64_t kSliceMs = 100;  // a signal ends the wait after this at most

// The child's work. It keeps no other file open: a lock of the parent's on one would outlast the
// parent.
[[noreturn]] void write_back_and_tell(int fd, int to) {
  ::dup2(fd, 0);
  ::dup2(to, 1);
  ::closefrom(2);
  const int error_number = ::syncfs(0) == 0 ? 0 : errno;
  const bool told = ::write(1, &error_number, sizeof error_number) == sizeof error_number;
  ::_exit(told ? 0 : 1);
}

// Waits until the child tells its error number. False if `until_ns` or a signal comes first.
bool is_told(int from, int64_t until_ns) {
  pollfd told{from, POLLIN, 0};
  while (true) {
    const int64_t left_ms = (until_ns - board_ns()) / 1'000'000;
    const int ready = ::poll(&told, 1, static_cast<int>(std::clamp<int64_t>(left_ms, 0, kSliceMs)));
    if (ready > 0) return true;
    if (stop_requested() || left_ms <= 0) return false;
  }
}

}  // namespace

// syncfs() cannot be cancelled: its process may outlive the wait. It is no thread, because the C
// library takes locks in a process that ever had two threads, and looks at each system call whether
// the thread is to end (SQLite: 90 instructions a read).
Status write_back(const std::string& path, double limit_s, bool* settled) {
  const int64_t until_ns = board_ns() + static_cast<int64_t>(limit_s * 1e9);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(path + ": cannot be opened to write it back");
  int ends[2] = {-1, -1};
  const pid_t child = ::pipe2(ends, O_CLOEXEC) == 0 ? ::fork() : -1;
  if (child == 0) write_back_and_tell(fd, ends[1]);
  int failure = child < 0 ? errno : 0;
  ::close(fd);
  ::close(ends[1]);
  *settled = child > 0 && is_told(ends[0], until_ns);
  if (*settled) {
    if (::read(ends[0], &failure, sizeof failure) != sizeof failure) failure = EIO;
    ::waitpid(child, nullptr, 0);
  }
  ::close(ends[0]);
  if (failure != 0) return system_error(path + ": writing back failed", failure);
  return Status::ok();
}

}  // namespace opjoule
