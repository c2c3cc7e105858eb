// write(2) until everything is written.
//
// Thread safety: any thread; a single write() where the kernel takes it whole.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace opjoule {

// False with errno where it fails.
inline bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace opjoule
