#include "timer.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/delay.h>

#include "edge_gate.h"
#include "instances.h"
#include "interrupt_lock.h"
#include "tick_clock.h"

namespace opjoule {
namespace timer {

TickClock clock;

namespace {
constexpr int32_t kAtOnceTicks = 8;  // an alarm closer than this could be passed while it is set
constexpr double kPullUpUs = 20;     // 50 kohm (28.2) into 100 pF of wire, four times over
uint32_t alarm_ticks;
EdgeGate gate;

// Interrupts off.
OPJOULE_INLINE uint32_t stamp(uint16_t counter) {
  return extend_ticks(counter, clock.overflows(), TIFR1 & _BV(TOV1));
}

// Captures the line's next edge, whatever its level is now. Twice: it may change meanwhile.
// Interrupts off.
void watch_line() {
  for (uint8_t look = 0; look < 2; ++look) {
    if (PINB & _BV(PB0)) {
      TCCR1B &= static_cast<uint8_t>(~_BV(ICES1));
    } else {
      TCCR1B |= _BV(ICES1);
    }
    TIFR1 = _BV(ICF1);  // 15.6.3: the flag must be cleared after a change of edge
  }
  TIMSK1 |= _BV(ICIE1);
}
}  // namespace

void begin() {
  // With the pull-up, so that an open line rests (13.2.3).
  DDRB &= static_cast<uint8_t>(~_BV(PB0));
  PORTB |= _BV(PB0);
  _delay_us(kPullUpUs);
  TCCR1A = 0;
  // clk/8 and the capture's noise canceler, which delays each edge by 4 CPU cycles (15.6.2).
  TCCR1B = _BV(ICNC1) | _BV(CS11);
  TIFR1 = _BV(TOV1) | _BV(OCF1A);
  TIMSK1 = _BV(TOIE1);
  watch_line();
}

uint32_t now_ticks() {
  uint16_t low;
  uint16_t overflows;
  bool pending;
  {
    InterruptLock lock;
    low = TCNT1;
    pending = TIFR1 & _BV(TOV1);
    overflows = clock.overflows();
  }
  return extend_ticks(low, overflows, pending);
}

uint8_t turn() { return clock.turn(); }

// The counter's bytes are read one after the other: an interrupt in between can spoil one reading,
// but not two in the same way.
void wait_until(uint32_t ticks) {
  for (;;) {
    const uint16_t first = TCNT1;
    const uint16_t second = TCNT1;
    const bool sound = static_cast<uint16_t>(second - first) < 16;
    if (sound && static_cast<int16_t>(second - static_cast<uint16_t>(ticks)) >= 0) return;
  }
}

uint32_t wraps() {
  InterruptLock lock;
  return clock.wraps();
}

void set_alarm(uint32_t ticks) {
  if (ticks_between(stamp(TCNT1), ticks) < kAtOnceTicks) {
    on_alarm();
    return;
  }
  alarm_ticks = ticks;
  OCR1A = static_cast<uint16_t>(ticks);
  TIFR1 = _BV(OCF1A);
  TIMSK1 |= _BV(OCIE1A);
}

bool alarm_pending() { return TIMSK1 & _BV(OCIE1A); }

void cancel_alarm() { TIMSK1 &= static_cast<uint8_t>(~_BV(OCIE1A)); }

}  // namespace timer

ISR(TIMER1_OVF_vect) {
  timer::clock.overflow();
  if (timer::gate.turn()) timer::watch_line();
}

// The match comes once in every turn of the counter; a distant alarm waits for its own turn.
ISR(TIMER1_COMPA_vect) {
  if (ticks_between(timer::stamp(TCNT1), timer::alarm_ticks) > 0) return;
  timer::cancel_alarm();
  on_alarm();
}

ISR(TIMER1_CAPT_vect) {
  const uint16_t captured = ICR1;
  const bool rising = TCCR1B & _BV(ICES1);
  const uint32_t ticks = timer::stamp(captured);
  if (!timer::gate.admit(captured)) {
    // The capture comes before all other interrupts of the timer and the bus: they would starve.
    TIMSK1 &= static_cast<uint8_t>(~_BV(ICIE1));
    g_edges.skip();
    g_faults.count(protocol::Fault::sync_oscillates, kNoSensor, ticks);
    return;
  }
  // 15.6.3: the flag must be cleared after a change of edge.
  TCCR1B ^= _BV(ICES1);
  TIFR1 = _BV(ICF1);
  if (!g_edges.push(ticks, rising)) g_faults.count(protocol::Fault::edge_missed, kNoSensor, ticks);
  const bool high = PINB & _BV(PB0);
  if (high != rising && !(TIFR1 & _BV(ICF1))) {
    // The line went back before the capture was set to the other direction: the time of that edge
    // is unknown.
    TCCR1B ^= _BV(ICES1);
    TIFR1 = _BV(ICF1);
    g_edges.skip();
    g_faults.count(protocol::Fault::edge_missed, kNoSensor, ticks);
  }
}

}  // namespace opjoule
