// What the two halves of the TWI driver share: twi.cpp carries out transfers, twi_row.cpp the rows
// of evenly paced reads within them. Interrupt context, or interrupts off.
#ifndef OPJOULE_SRC_TWI_INTERNAL_H_
#define OPJOULE_SRC_TWI_INTERNAL_H_

#include <avr/io.h>
#include <stdint.h>

#include "bus_transfer.h"
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
  kStarted = 0x08,
  kStartedAgain = 0x10,
  kWriteAcknowledged = 0x18,
  kDataAcknowledged = 0x28,
  kArbitrationLost = 0x38,
  kReadAcknowledged = 0x40,
  kDataReceived = 0x50,
  kLastDataReceived = 0x58,
};

extern const BusTransfer* current;  // the transfer under way
extern BusResult* result;           // of it
extern bool refused;                // something was not acknowledged
extern volatile uint8_t launches;   // STARTs sent, modulo 256: watch() sees whether the bus moves
extern uint8_t row_left;            // reads of a row to come, with the one under way; 0: no row
extern bool row_held;               // within a row, the bus waits for the alarm

// At the end of each phase the interrupt gives TWDR and TWCR what was put here, before it does
// anything else: the bus waits for nothing but the interrupt's entry. GPIOR0 says what follows:
constexpr uint8_t kLast = _BV(0);  // the transfer ends there
constexpr uint8_t kRow = _BV(1);   // a row of reads is under way: twi_row.cpp goes on
constexpr uint8_t kAgain =
    _BV(2);  // a repeated START: its end is waited for, then the address sent

OPJOULE_INLINE void answer_with(uint8_t data, uint8_t control, uint8_t follows = 0) {
  GPIOR2 = data;
  GPIOR1 = control;
  GPIOR0 = follows;
}
OPJOULE_INLINE void answer_stop() { answer_with(0, kStop, kLast); }
OPJOULE_INLINE void answer_start(bool to_read) {
  opjoule_twi_address = static_cast<uint8_t>((current->address << 1) | to_read);
  answer_with(0, kStart, kAgain);
}

// A START takes 2.5 us; waits for its end, at most 110 us. TWINT comes even if the bus was lost,
// but not if it hangs.
OPJOULE_INLINE void await_start() {
  for (uint8_t tries = 0; !(TWCR & _BV(TWINT)) && tries < 250; ++tries) {
  }
}

// Not acknowledged, or worse. The bus carries on with a byte for nobody; after that it is stopped.
// If it does not even do that, watch() finds it.
OPJOULE_INLINE void refuse() {
  refused = true;
  answer_stop();
}

// A transfer has ended and the bus was told to stop. (twi.cpp)
void finish();

// A transfer with kPaced is being launched; the address of its first read is on its way; it has
// ended early. (twi_row.cpp)
void begin_row(bool set_pointer);
void enter_row();
void end_row();
// Its last read has ended well, with this low byte.
void complete_row(uint8_t low_byte);
// The alarm while row_held.
void resume_row();

}  // namespace twi
}  // namespace opjoule

#endif  // OPJOULE_SRC_TWI_INTERNAL_H_
