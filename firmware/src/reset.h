// The watchdog, why the ATmega328P was reset last, and how much stack has never been used.
#ifndef OPJOULE_SRC_RESET_H_
#define OPJOULE_SRC_RESET_H_

#include <stdint.h>

namespace opjoule {
namespace reset {

// MCUSR as found at the start (data sheet DS40002061B, 10.9.1); 0 where a boot loader has cleared
// it.
uint8_t cause();

// From now on the program starts anew unless wdt_reset() is called every 0.5 s. With
// OPJOULE_SOFT_RESTART by a jump, without a reset: after a watchdog reset the watchdog stays on
// (10.8.2), and a boot loader that does not switch it off is reset for ever.
void start_watchdog();

// Bytes between data (or heap) and stack that have never been used.
uint16_t stack_free_bytes();

}  // namespace reset
}  // namespace opjoule

#endif  // OPJOULE_SRC_RESET_H_
