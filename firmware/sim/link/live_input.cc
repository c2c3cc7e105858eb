#include "link/live_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "errors.h"

namespace opjoule::rig {

LiveInput::LiveInput(const std::string& path)
    : fd_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_ < 0)
    throw RigError("cannot open --live " + path + ": " + std::strerror(errno) +
                   "; make it with mkfifo");
}

LiveInput::~LiveInput() {
  if (fd_ >= 0) close(fd_);
}

bool LiveInput::read_into(LiveFeed& feed) {
  char text[65536];
  while (fd_ >= 0) {
    const ssize_t count = read(fd_, text, sizeof text);
    if (count < 0 || (count == 0 && !had_writer_)) break;
    if (count > 0) {
      had_writer_ = true;
      feed.take({text, static_cast<std::size_t>(count)});
      continue;
    }
    close(fd_);
    fd_ = -1;
  }
  return fd_ >= 0;
}

}  // namespace opjoule::rig
