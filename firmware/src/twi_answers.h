// The answer of the TWI interrupt at the end of each phase of a transfer: prepared beforehand,
// since the bus waits for it. Interrupt context, or interrupts off. Part of twi.cpp.
#ifndef OPJOULE_SRC_TWI_ANSWERS_H_
#define OPJOULE_SRC_TWI_ANSWERS_H_

#include <avr/io.h>
#include <stdint.h>

#include "interrupt_lock.h"

// TWSR and TWDR as found at the last bus event, and the address to send after a repeated START.
extern "C" volatile uint8_t opjoule_twi_status;
extern "C" volatile uint8_t opjoule_twi_data;
extern "C" volatile uint8_t opjoule_twi_address;

namespace opjoule {
namespace twi {

// 21.9.2: what TWCR is told; TWINT lets the bus go on.
constexpr uint8_t kGo = _BV(TWINT) | _BV(TWEN) | _BV(TWIE);
constexpr uint8_t kGoAcknowledge = kGo | _BV(TWEA);
constexpr uint8_t kStart = _BV(TWINT) | _BV(TWEN) | _BV(TWSTA);  // without interrupt: waited for
constexpr uint8_t kStop = _BV(TWINT) | _BV(TWEN) | _BV(TWSTO);

// 21.7, tables 21-3 and 21-4: status codes.
enum Status : uint8_t {
  kBusError = 0x00,
  kWriteAcknowledged = 0x18,
  kDataAcknowledged = 0x28,
  kArbitrationLost = 0x38,
  kReadAcknowledged = 0x40,
  kDataReceived = 0x50,
  kLastDataReceived = 0x58,
};

OPJOULE_INLINE bool is_lost(uint8_t status) {
  return status == kBusError || status == kArbitrationLost;
}

// The interrupt first of all copies this into TWDR and TWCR, so that the bus waits only for the
// entry of the interrupt. GPIOR0 says what follows:
constexpr uint8_t kLast = _BV(0);   // the transfer ends there
constexpr uint8_t kAgain = _BV(1);  // a repeated START: waited for, then the address sent
// An address to read from follows: if it is refused (0x48), the bus may only be stopped (table
// 21-4).
constexpr uint8_t kMayRefuse = _BV(2);

OPJOULE_INLINE void answer_with(uint8_t data, uint8_t control, uint8_t follows = 0) {
  GPIOR2 = data;
  GPIOR1 = control;
  GPIOR0 = follows;
}
OPJOULE_INLINE void answer_stop() { answer_with(0, kStop, kLast); }
OPJOULE_INLINE void answer_address(uint8_t address) {
  opjoule_twi_address = address;
  answer_with(0, kStart, kAgain);
}

// A START takes 2.5 us; waits for its end, at most 110 us. TWINT comes even if the bus was lost,
// but not if it hangs.
OPJOULE_INLINE void await_start() {
  for (uint8_t tries = 0; !(TWCR & _BV(TWINT)) && tries < 250; ++tries) {
  }
}

}  // namespace twi
}  // namespace opjoule

#endif  // OPJOULE_SRC_TWI_ANSWERS_H_
