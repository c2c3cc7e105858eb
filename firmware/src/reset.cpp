#include "reset.h"

#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/wdt.h>

extern uint8_t __heap_start;  // first byte after the data, from avr-libc's linker script
// End of the heap; part of avr-libc, present only if something calls malloc.
extern uint8_t* __brkval __attribute__((weak));

namespace {
constexpr uint8_t kPaint = 0xC5;
uint8_t found_cause __attribute__((section(".noinit")));
#ifdef OPJOULE_SOFT_RESTART
constexpr uint16_t kRestarted = 0xB007;
uint16_t restart_mark __attribute__((section(".noinit")));
#endif
}  // namespace

// Runs before the data is set up: the watchdog stays on after a reset of its own (10.8.2), and the
// stack is painted while it is not in use.
extern "C" void opjoule_early() __attribute__((naked, used, section(".init3")));
void opjoule_early() {
  found_cause = MCUSR;
  MCUSR = 0;
  wdt_disable();
#ifdef OPJOULE_SOFT_RESTART
  // Only a jump leaves no flag; before any reset the mark is whatever the RAM holds.
  if (found_cause == 0 && restart_mark == kRestarted) found_cause = _BV(WDRF);
  restart_mark = 0;
#endif
  for (uint8_t* p = &__heap_start; p <= reinterpret_cast<uint8_t*>(RAMEND); ++p) *p = kPaint;
}

namespace opjoule {
namespace reset {

uint8_t cause() { return found_cause; }

void start_watchdog() {
#ifdef OPJOULE_SOFT_RESTART
  // Interrupt mode, 0.5 s (10.9.2, tables 10-1 and 10-2). Called with interrupts on or off.
  const uint8_t status = SREG;
  cli();
  wdt_reset();
  WDTCSR = _BV(WDCE) | _BV(WDE);
  WDTCSR = _BV(WDIE) | _BV(WDP2) | _BV(WDP0);
  SREG = status;
#else
  wdt_enable(WDTO_500MS);
#endif
}

uint16_t stack_free_bytes() {
  const bool heap_used = &__brkval != nullptr && __brkval != nullptr;
  const uint8_t* const start = heap_used ? __brkval : &__heap_start;
  const uint8_t* p = start;
  while (p <= reinterpret_cast<const uint8_t*>(RAMEND) && *p == kPaint) ++p;
  return static_cast<uint16_t>(p - start);
}

}  // namespace reset
}  // namespace opjoule

#ifdef OPJOULE_SOFT_RESTART
// Interrupts are off from here until main() allows them. What could interrupt it before its part of
// the program has set it up is switched off.
ISR(WDT_vect, ISR_NAKED) {
  __asm__ volatile("clr __zero_reg__");
  restart_mark = kRestarted;
  TIMSK1 = 0;
  UCSR0B = 0;
  TWCR = 0;
  EIMSK = 0;
  __asm__ volatile("jmp 0");
}
#endif
