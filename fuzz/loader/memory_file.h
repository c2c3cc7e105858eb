// A file in memory: parsers that open a path read one that costs no disk.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "fuzz/parsers.h"

namespace opjoule::fuzz {

class MemoryFile {
 public:
  MemoryFile()
      : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
    expect(fd_ >= 0, "a file in memory can be made");
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Each opening of path() begins at the front.
  [[nodiscard]] const std::string& path() const { return path_; }
  void fill(const uint8_t* data, size_t size) const {
    const bool filled =
        ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, data, size, 0) == static_cast<ssize_t>(size);
    expect(filled, "a file in memory takes its bytes");
  }
  [[nodiscard]] std::string bytes() const {
    std::string all(static_cast<size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
    expect(::pread(fd_, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()),
           "a file in memory gives its bytes");
    return all;
  }

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace opjoule::fuzz
