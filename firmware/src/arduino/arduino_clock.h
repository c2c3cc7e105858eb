// The meter's clock on the Arduino framework: micros(), in ticks of 0.5 us like the protocol's. Its
// resolution is the framework's: 4 us on an AVR at 16 MHz, 1 us elsewhere.
#ifndef OPJOULE_SRC_ARDUINO_ARDUINO_CLOCK_H_
#define OPJOULE_SRC_ARDUINO_ARDUINO_CLOCK_H_

#include <Arduino.h>
#include <stdint.h>

#include "tick_clock.h"

namespace opjoule {

// Any context. Wraps with micros(), whose 32 bits it shifts.
inline uint32_t arduino_now_ticks() { return static_cast<uint32_t>(micros()) * kTicksPerUs; }

// Counts the wraps of arduino_now_ticks(); main loop only.
class WrapCounter {
 public:
  // To be called more often than the ticks wrap (35.8 minutes).
  uint32_t wraps() {
    const uint32_t now_ticks = arduino_now_ticks();
    if (now_ticks < last_ticks_) ++wraps_;
    last_ticks_ = now_ticks;
    return wraps_;
  }

 private:
  uint32_t last_ticks_ = 0;
  uint32_t wraps_ = 0;
};

}  // namespace opjoule

#endif  // OPJOULE_SRC_ARDUINO_ARDUINO_CLOCK_H_
