// I2C devices made of big-endian registers behind a pointer that persists, as all of TI's INA2xx
// are.
#pragma once

#include <cstddef>

#include "sensors/i2c_device.h"

namespace opjoule::rig {

/// Write: pointer byte, then the register's bytes, most significant first. Read: the register at
/// the pointer, taken as a whole when the address is acknowledged, so that a conversion that ends
/// during the read cannot mix two values (SBOS448G 8.5.6; that the chip latches is an assumption).
class RegisterDevice : public I2cDevice {
 public:
  bool select(bool read, double now_s) final;
  bool write(std::uint8_t byte, double now_s) final;
  std::uint8_t read(double now_s) final;

 protected:
  /// Width of a register [bytes], 1 to 8.
  virtual std::size_t register_bytes(std::uint8_t pointer) const = 0;
  virtual std::uint64_t read_register(std::uint8_t pointer, double now_s) = 0;
  virtual void write_register(std::uint8_t pointer, std::uint64_t value, double now_s) = 0;

 private:
  std::uint8_t pointer_ = 0;
  bool pointer_next_ = false;
  std::uint64_t value_ = 0;  // assembled while written, shifted out while read
  std::size_t bytes_ = 0;    // of value_ so far written or read
};

}  // namespace opjoule::rig
