#include "sensors/register_device.h"

namespace opjoule::rig {

bool RegisterDevice::select(bool read, double now_s) {
  bytes_ = 0;
  value_ = read ? read_register(pointer_, now_s) : 0;
  pointer_next_ = !read;
  return true;
}

bool RegisterDevice::write(std::uint8_t byte, double now_s) {
  if (pointer_next_) {
    pointer_ = byte;
    pointer_next_ = false;
    return true;
  }
  value_ = value_ << 8 | byte;
  if (++bytes_ == register_bytes(pointer_)) write_register(pointer_, value_, now_s);
  return true;
}

std::uint8_t RegisterDevice::read(double) {
  const std::size_t width = register_bytes(pointer_);
  if (bytes_ >= width) return 0xFF;
  ++bytes_;
  return static_cast<std::uint8_t>(value_ >> 8 * (width - bytes_));
}

}  // namespace opjoule::rig
