// One transfer on the I2C bus, as the sampler asks for it and the layer below carries it out: one
// register written, or up to three read in a row without letting go of the bus.
#ifndef OPJOULE_SAMPLING_BUS_TRANSFER_H_
#define OPJOULE_SAMPLING_BUS_TRANSFER_H_

#include <stdint.h>

#include "messages.h"

namespace opjoule {

constexpr uint8_t kMaxReads = 3;

struct BusTransfer {
  uint8_t address;  // 7 bit
  uint8_t reads;    // registers to read, 0: write `value` to registers[0]
  uint8_t registers[kMaxReads];
  uint8_t flags;   // bit i: registers[i] has 3 bytes instead of 2
  uint16_t value;  // to write

  uint8_t last_register() const { return registers[reads == 0 ? 0 : reads - 1]; }
};

inline BusTransfer read_register(uint8_t address, uint8_t reg) {
  return {address, 1, {reg, 0, 0}, 0, 0};
}
inline BusTransfer write_register(uint8_t address, uint8_t reg, uint16_t value) {
  return {address, 0, {reg, 0, 0}, 0, value};
}

// The raw outcome of a transfer: the interrupt has no time to interpret it.
struct BusResult {
  bool ok;
  protocol::Fault fault;         // if not ok
  uint8_t bytes[3 * kMaxReads];  // in the order of the bus, big endian
  uint32_t end_ticks;            // when the transfer ended
  // For each read, the low half of the time at which the chip acknowledged its address: the moment
  // at which it takes the value from its register.
  uint16_t looks[kMaxReads];

  // A transfer lasts far less than a turn of the counter.
  uint32_t look_ticks(uint8_t read) const {
    return end_ticks - static_cast<uint16_t>(static_cast<uint16_t>(end_ticks) - looks[read]);
  }
  // The 24-bit register at `from` of bytes.
  uint32_t value24(uint8_t from) const {
    return (static_cast<uint32_t>(bytes[from]) << 16) | value16(static_cast<uint8_t>(from + 1));
  }
  // The 16-bit register at `from` of bytes.
  uint16_t value16(uint8_t from = 0) const {
    return static_cast<uint16_t>((bytes[from] << 8) | bytes[from + 1]);
  }
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_BUS_TRANSFER_H_
