// What finding and requesting GPIO lines have in common: the kernel's descriptors and requests.
//
// Thread safety: none.
#pragma once

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "board/gpio_chip.h"

namespace opjoule {

// A descriptor that is closed with its object.
class GpioFile {
 public:
  explicit GpioFile(int fd) : fd_(fd) {}
  ~GpioFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  GpioFile(const GpioFile&) = delete;
  GpioFile& operator=(const GpioFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

inline int ask(const GpioKernel& kernel, int fd, unsigned long request, void* argument) {
  if (kernel.control != nullptr) return kernel.control(fd, request, argument);
  return ::ioctl(fd, request, argument);
}

// "/dev/gpiochip0:17 (GPIO17)".
inline std::string place(const GpioLine& line) {
  const std::string at = line.chip + ":" + std::to_string(line.offset);
  return line.name.empty() ? at : at + " (" + line.name + ")";
}

}  // namespace opjoule
