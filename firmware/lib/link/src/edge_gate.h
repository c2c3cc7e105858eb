// Keeps an oscillating sync line from taking all of the processor's time. A board's edges are far
// apart; a line that floats, or whose driver oscillates, brings tens of thousands a second. Above
// kMostEdges in one window (2 kHz) the gate closes: edges are not looked at for a pause, whose
// length is counted in turns of the counter.
#ifndef OPJOULE_LINK_EDGE_GATE_H_
#define OPJOULE_LINK_EDGE_GATE_H_

#include <stdint.h>

#include "interrupt_lock.h"

namespace opjoule {

class EdgeGate {
 public:
  static constexpr uint8_t kMostEdges = 4;
  static constexpr uint8_t kPauseTurns = 4;  // 98 to 131 ms

  // Interrupt. An edge at this value of the counter; false: it is one too many, and the gate has
  // closed.
  OPJOULE_INLINE bool admit(uint16_t counter) {
    // A sixteenth of a turn, 2.048 ms.
    const uint8_t window = static_cast<uint8_t>(counter >> 8) & 0xF0;
    if (window != window_) {
      window_ = window;
      edges_ = 0;
    }
    edges_ = static_cast<uint8_t>(edges_ + 1);
    if (edges_ <= kMostEdges) return true;
    pause_ = kPauseTurns;
    return false;
  }

  // Interrupt. The counter has begun a new turn; true: the gate has just opened again.
  OPJOULE_INLINE bool turn() {
    edges_ = 0;
    if (pause_ == 0) return false;
    pause_ = static_cast<uint8_t>(pause_ - 1);
    return pause_ == 0;
  }

  bool closed() const { return pause_ != 0; }

 private:
  uint8_t window_ = 0;
  uint8_t edges_ = 0;
  uint8_t pause_ = 0;  // turns left
};

}  // namespace opjoule

#endif  // OPJOULE_LINK_EDGE_GATE_H_
