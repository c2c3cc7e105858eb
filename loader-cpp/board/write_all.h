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

// Appends whole lines to a file: if that fails (a full disk), a line that was begun is cut off
// again. False with errno where it fails.
inline bool write_lines(int fd, std::string_view lines) {
  const off_t start = ::lseek(fd, 0, SEEK_CUR);  // -1: a FIFO, of which nothing can be cut off
  if (write_all(fd, lines)) return true;
  const int error_number = errno;
  const off_t end = ::lseek(fd, 0, SEEK_CUR);
  if (start >= 0 && end > start) {
    const size_t newline = lines.rfind('\n', static_cast<size_t>(end - start) - 1);
    const off_t kept =
        start + (newline == std::string_view::npos ? 0 : static_cast<off_t>(newline) + 1);
    if (::ftruncate(fd, kept) == 0) static_cast<void>(::lseek(fd, kept, SEEK_SET));
  }
  errno = error_number;
  return false;
}

}  // namespace opjoule
