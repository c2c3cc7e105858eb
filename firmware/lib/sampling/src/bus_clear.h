// Frees an I2C bus whose data line is held low by a device that has lost step with the clock (a
// reset in the middle of a read, a glitch): it still sends a 0 and waits for clocks that no one
// gives. Sends clocks until the line is high, at most nine, then a STOP (NXP UM10204 rev. 6,
// 3.1.16, "Bus clear").
#ifndef OPJOULE_SAMPLING_BUS_CLEAR_H_
#define OPJOULE_SAMPLING_BUS_CLEAR_H_

#include <stdint.h>

namespace opjoule {

constexpr uint8_t kMostClearingClocks = 9;

// `Lines` drives both lines as open drains: data_is_high(), pull_clock(), release_clock(),
// pull_data(), release_data(), wait() for half a clock of 100 kHz (5 us). Both lines are released
// before the call. False: the data line was high and nothing was done. Takes at most 0.2 ms, also
// if the line stays low.
template <typename Lines>
bool clear_bus(Lines& lines) {
  lines.wait();
  if (lines.data_is_high()) return false;
  uint8_t clocks = 0;
  do {
    for (; clocks < kMostClearingClocks && !lines.data_is_high(); ++clocks) {
      lines.pull_clock();
      lines.wait();
      lines.release_clock();
      lines.wait();
    }
    // A STOP takes one more clock; a device that sends another 0 then hides it.
    lines.pull_clock();
    lines.pull_data();
    lines.wait();
    lines.release_clock();
    lines.wait();
    lines.release_data();
    lines.wait();
    ++clocks;
  } while (clocks < kMostClearingClocks && !lines.data_is_high());
  return true;
}

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_BUS_CLEAR_H_
