// Counts every fault, and says which to report: at most one message per code every 100 ms. count()
// may be called from interrupts or from the main loop, but for one code from only one of them.
#ifndef OPJOULE_FAULTS_FAULT_COUNTERS_H_
#define OPJOULE_FAULTS_FAULT_COUNTERS_H_

#include <stdint.h>

#include "interrupt_lock.h"
#include "messages.h"
#include "tick_clock.h"

namespace opjoule {

constexpr uint8_t kNoSensor = 255;

class FaultCounters {
 public:
  static constexpr uint8_t kCodes = sizeof(protocol::Status::faults) / sizeof(uint16_t);
  // 98 to 131 ms, counted in turns of the 16-bit counter (32.8 ms).
  static constexpr uint8_t kPauseTurns = 4;

  void count(protocol::Fault code, uint8_t sensor, uint32_t ticks, uint16_t times = 1) {
    Entry& entry = entries_[static_cast<uint8_t>(code)];
    const uint16_t room = static_cast<uint16_t>(0xFFFF - entry.count);
    entry.count = static_cast<uint16_t>(entry.count + (times < room ? times : room));
    entry.sensor = sensor;
    entry.ticks = ticks;
    InterruptLock lock;
    unreported_ |= static_cast<uint16_t>(1u << static_cast<uint8_t>(code));
  }

  uint16_t of(protocol::Fault code) const {
    InterruptLock lock;
    return entries_[static_cast<uint8_t>(code)].count;
  }

  // Fills `message` with a fault that is due to be reported in this turn of the counter; false if
  // there is none.
  bool take_due(uint8_t turn, protocol::FaultMessage* message) {
    if (unreported_ == 0) return false;
    for (uint8_t code = 0; code < kCodes; ++code) {
      const uint16_t bit = static_cast<uint16_t>(1u << code);
      Entry& entry = entries_[code];
      if (!(unreported_ & bit)) continue;
      if ((reported_ & bit) && static_cast<uint8_t>(turn - entry.reported_turn) < kPauseTurns) {
        continue;
      }
      InterruptLock lock;
      *message = {code, entry.sensor, entry.count, entry.ticks};
      entry.reported_turn = turn;
      reported_ |= bit;
      unreported_ &= static_cast<uint16_t>(~bit);
      return true;
    }
    return false;
  }

 private:
  struct Entry {
    uint32_t ticks;
    uint16_t count;
    uint8_t sensor;
    uint8_t reported_turn;
  };
  Entry entries_[kCodes] = {};
  volatile uint16_t unreported_ = 0;  // bit by code
  uint16_t reported_ = 0;             // ever
};

}  // namespace opjoule

#endif  // OPJOULE_FAULTS_FAULT_COUNTERS_H_
