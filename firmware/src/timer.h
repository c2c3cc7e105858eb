// Timer1 of the ATmega328P (data sheet DS40002061B, chapter 15): the tick clock, input capture of
// the sync line at ICP1 (PB0, Arduino pin D8), and an alarm.
#ifndef OPJOULE_SRC_TIMER_H_
#define OPJOULE_SRC_TIMER_H_

#include <stdint.h>

#include "tick_clock.h"

namespace opjoule {
namespace timer {

extern TickClock clock;

void begin();

// Any context.
uint32_t now_ticks();
uint8_t turn();  // of the counter, 32.8 ms each
uint32_t wraps();

// Waits until `ticks`, less than half a turn of the counter away. Main loop; interrupts stay
// enabled.
void wait_until(uint32_t ticks);

// Calls `alarm` (declared below, defined by the bus) from an interrupt at `ticks`; directly, if
// that is past or about to be. Interrupts off, no alarm pending.
void set_alarm(uint32_t ticks);
bool alarm_pending();
void cancel_alarm();

}  // namespace timer

// What the alarm does. Interrupts off.
void on_alarm();

}  // namespace opjoule

#endif  // OPJOULE_SRC_TIMER_H_
