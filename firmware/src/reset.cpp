#include "reset.h"

#include <avr/io.h>
#include <avr/wdt.h>

extern uint8_t __heap_start;  // first byte after the data, from avr-libc's linker script
// End of the heap; part of avr-libc, present only if something calls malloc.
extern uint8_t* __brkval __attribute__((weak));

namespace {
constexpr uint8_t kPaint = 0xC5;
uint8_t found_cause __attribute__((section(".noinit")));
}  // namespace

// Runs before the data is set up: the watchdog stays on after a reset of its own (10.8.2), and the
// stack is painted while it is not in use.
extern "C" void opjoule_early() __attribute__((naked, used, section(".init3")));
void opjoule_early() {
  found_cause = MCUSR;
  MCUSR = 0;
  wdt_disable();
  for (uint8_t* p = &__heap_start; p <= reinterpret_cast<uint8_t*>(RAMEND); ++p) *p = kPaint;
}

namespace opjoule {
namespace reset {

uint8_t cause() { return found_cause; }

uint16_t stack_free_bytes() {
  const bool heap_used = &__brkval != nullptr && __brkval != nullptr;
  const uint8_t* const start = heap_used ? __brkval : &__heap_start;
  const uint8_t* p = start;
  while (p <= reinterpret_cast<const uint8_t*>(RAMEND) && *p == kPaint) ++p;
  return static_cast<uint16_t>(p - start);
}

}  // namespace reset
}  // namespace opjoule
