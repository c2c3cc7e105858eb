// Edges of the sync line on their way from the capture interrupt to the main loop; also the last
// three that were sent, since every edge message repeats them.
#ifndef OPJOULE_LINK_EDGE_LOG_H_
#define OPJOULE_LINK_EDGE_LOG_H_

#include <stdint.h>

#include "interrupt_lock.h"
#include "messages.h"

namespace opjoule {

class EdgeLog {
 public:
  // Interrupt. False: the main loop is behind and the edge is lost, but still counted.
  bool push(uint32_t ticks, uint8_t level) {
    const uint16_t index = count_;
    count_ = static_cast<uint16_t>(count_ + 1);
    if (static_cast<uint8_t>(head_ - tail_) == kCapacity) return false;
    entries_[head_ & (kCapacity - 1)] = {ticks, index, level};
    head_ = static_cast<uint8_t>(head_ + 1);
    return true;
  }

  // Interrupt: an edge whose time is unknown. It is counted.
  void skip() { count_ = static_cast<uint16_t>(count_ + 1); }

  // Main loop.
  bool pending() const { return head_ != tail_; }

  // The next edge as a message; only if pending().
  protocol::Edge take() {
    const Entry entry = entries_[tail_ & (kCapacity - 1)];
    tail_ = static_cast<uint8_t>(tail_ + 1);
    protocol::Edge message = {entry.index, entry.ticks, entry.level, 0, {0, 0, 0}, {0, 0, 0}};
    for (uint8_t back = 0; back < 3; ++back) {
      // Only consecutive edges can be repeated: a lost one ends the series.
      if (back >= sent_ || static_cast<uint16_t>(last_[back].index + back + 1) != entry.index)
        break;
      message.previous_ticks[back] = last_[back].ticks;
      message.previous_level[back] = last_[back].level;
      message.previous_count = static_cast<uint8_t>(back + 1);
    }
    last_[2] = last_[1];
    last_[1] = last_[0];
    last_[0] = entry;
    if (sent_ < 3) ++sent_;
    return message;
  }

  // Edges since restart().
  uint16_t count() const {
    InterruptLock lock;
    return count_;
  }

  void restart() {
    InterruptLock lock;
    tail_ = head_;
    count_ = 0;
    sent_ = 0;
  }

 private:
  static constexpr uint8_t kCapacity = 8;
  struct Entry {
    uint32_t ticks;
    uint16_t index;
    uint8_t level;
  };
  Entry entries_[kCapacity];
  Entry last_[3];
  volatile uint8_t head_ = 0;
  volatile uint8_t tail_ = 0;
  uint16_t count_ = 0;
  uint8_t sent_ = 0;
};

}  // namespace opjoule

#endif  // OPJOULE_LINK_EDGE_LOG_H_
