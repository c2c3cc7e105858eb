// A device on the simulated I2C bus, as the bus controller sees it.
#pragma once

#include <cstdint>

namespace opjoule::rig {

/// Calls come in bus order; `now_s` is rig time at the end of the byte (true seconds since the
/// microcontroller started) and never decreases.
class I2cDevice {
 public:
  virtual ~I2cDevice() = default;
  /// Own address seen after START or repeated START. Returns true to acknowledge.
  virtual bool select(bool read, double now_s) = 0;
  /// One byte from the controller. Returns true to acknowledge.
  virtual bool write(std::uint8_t byte, double now_s) = 0;
  /// One byte to the controller.
  virtual std::uint8_t read(double now_s) = 0;
};

}  // namespace opjoule::rig
