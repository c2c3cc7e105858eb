#include "link/grant.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>

#include "errors.h"
#include "link/pty_link.h"

namespace opjoule::rig {
namespace {

constexpr double kSignalSlice_s = 0.1;  // a signal that comes just before a wait does not end it

}  // namespace

Grant::Grant(int fd) : fd_(fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
    throw RigError("--grant " + std::to_string(fd) + ": no such descriptor is open");
}

Grant::~Grant() { end(); }

bool Grant::wait(const volatile int& stop) {
  while (!asked_ && !stop) {
    if (const auto end = text_.find('\n'); end != std::string::npos) {
      take(text_.substr(0, end));
      text_.erase(0, end + 1);
      continue;
    }
    wait_readable(fd_, -1, kSignalSlice_s);
    char piece[256];
    const ssize_t count = read(fd_, piece, sizeof piece);
    if (count == 0) throw RigError("the host closed --grant before the end", 1);
    if (count > 0) text_.append(piece, static_cast<std::size_t>(count));
  }
  return asked_;
}

void Grant::take(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  std::int64_t until_ns = -1;
  words >> kind >> until_ns;
  if ((kind != "pass" && kind != "read") || until_ns < now_ns_)
    throw RigError("--grant: not pass NS or read NS from " + std::to_string(now_ns_) +
                   " on: " + line);
  asked_ = true;
  for_reading_ = kind == "read";
  until_ns_ = until_ns;
}

void Grant::reached(std::int64_t now_ns) {
  asked_ = false;
  now_ns_ = now_ns;
  const std::string line = std::to_string(now_ns) + "\n";
  // The host that waits for it has room; one that is gone is noticed at the next wait().
  if (fd_ >= 0) (void)!send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
}

void Grant::end() {
  if (asked_) reached(until_ns_);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace opjoule::rig
