// The meter's clock: a free-running 16-bit counter of 0.5 us ticks, widened by counting its
// overflows. Time stamps are the low 32 bits (they wrap after 35.8 minutes; the host unwraps).
#ifndef OPJOULE_CLOCK_TICK_CLOCK_H_
#define OPJOULE_CLOCK_TICK_CLOCK_H_

#include <stdint.h>

#include "interrupt_lock.h"

namespace opjoule {

constexpr uint32_t kTicksPerUs = 2;
constexpr uint32_t kTicksPerSecond = 2000000UL;

// Ticks from `earlier` to `later`; negative if `later` came first. Correct for distances below 2^31
// ticks (17.9 minutes).
inline int32_t ticks_between(uint32_t earlier, uint32_t later) {
  return static_cast<int32_t>(later - earlier);
}

// A stamp from the counter's value `low` (counter or capture register) and the overflows counted.
// `pending`: the counter has overflowed and the interrupt has not run yet. A small value was read
// after that overflow, a large one before it, since an interrupt waits far less than half a turn.
inline uint32_t extend_ticks(uint16_t low, uint16_t overflows, bool pending) {
  if (pending && low < 0x8000) ++overflows;
  return (static_cast<uint32_t>(overflows) << 16) | low;
}

// Counts the turns of the counter.
class TickClock {
 public:
  // From the overflow interrupt.
  void overflow() {
    const uint16_t turns = static_cast<uint16_t>(turns_ + 1);
    turns_ = turns;
    if (turns == 0) wraps_ = static_cast<uint16_t>(wraps_ + 1);
  }

  // Interrupts off.
  OPJOULE_INLINE uint16_t overflows() const { return turns_; }
  // How often the 32-bit stamps have wrapped. Interrupts off.
  uint32_t wraps() const { return wraps_; }

  // The turns modulo 256, 32.8 ms each: a coarse clock that any context may read.
  uint8_t turn() const { return static_cast<uint8_t>(turns_); }

 private:
  volatile uint16_t turns_ = 0;
  volatile uint16_t wraps_ = 0;  // of turns_
};

}  // namespace opjoule

#endif  // OPJOULE_CLOCK_TICK_CLOCK_H_
