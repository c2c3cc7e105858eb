#include <avr/interrupt.h>
#include <avr/io.h>

#include "instances.h"
#include "timer.h"
#include "twi_internal.h"

// Rows of reads at an even pace (BusTransfer with kPaced). Between them the bus is held: TWINT
// stays set and SCL low until the next repeated START.

namespace opjoule {
namespace twi {

uint8_t row_left = 0;
bool row_held = false;

namespace {

enum class RowPhase : uint8_t { address, high_byte, low_byte };

RowPhase row_phase;
uint8_t row_high;
uint16_t row_start;  // counter at which the next read is to start
uint8_t row_start_part_q8;
uint16_t row_period;  // PacedRead's, taken apart
uint8_t row_period_part_q8;
int16_t row_late;
constexpr uint8_t kHold = _BV(TWEN);
constexpr int16_t kLongestSpinTicks = 24;
// Between the starts of a read with pointer and of one without that look at the same time.
constexpr uint16_t kPointerTicks = 110;

OPJOULE_INLINE void expect_address() {
  row_phase = RowPhase::address;
  answer_with(0, kGoAcknowledge, kRow);
}

OPJOULE_INLINE void start_again() {
  TWCR = kStart;
  ++launches;
  expect_address();
  const uint8_t address = static_cast<uint8_t>((current->address << 1) | 1);
  await_start();
  TWDR = address;
  TWCR = kGo;
}

// After a phase of a read of the row, other than the row's last. No calls, and the START first: at
// 84 us a conversion the bus is busy 73 us, and each cycle here counts.
OPJOULE_INLINE void follow_row(uint8_t status, uint8_t data) {
  if (row_phase == RowPhase::low_byte) {
    --row_left;
    const int16_t wait = static_cast<int16_t>(row_start - TCNT1);
    if (wait > kLongestSpinTicks || wait < row_late) {
      row_held = true;
      timer::set_short_alarm(wait > 0 ? row_start : static_cast<uint16_t>(TCNT1 + 8));
    } else {
      while (static_cast<int16_t>(row_start - TCNT1) > 0) {
      }
      start_again();
    }
    g_sampler.even_queue().push(static_cast<int16_t>((row_high << 8) | data));
  } else if (row_phase == RowPhase::address) {
    if (status != kReadAcknowledged) return refuse();
    row_phase = RowPhase::high_byte;
    answer_with(0, kGo, kRow);
    const uint16_t part_q8 = static_cast<uint16_t>(row_start_part_q8 + row_period_part_q8);
    row_start_part_q8 = static_cast<uint8_t>(part_q8);
    row_start = static_cast<uint16_t>(row_start + row_period + (part_q8 >> 8));
  } else {
    if (status != kDataReceived) return refuse();
    row_phase = RowPhase::low_byte;
    row_high = data;
    if (row_left > 1) return answer_with(0, kHold, kRow);
    answer_stop();
  }
}

}  // namespace

void begin_row(bool set_pointer) {
  const PacedRead& paced = g_sampler.paced();
  row_left = paced.count;
  row_period = static_cast<uint16_t>(paced.period_q8 >> 8);
  row_period_part_q8 = static_cast<uint8_t>(paced.period_q8);
  row_late = -static_cast<int16_t>(paced.late_ticks);
  // By the plan, even if this read starts late: the next ones catch up.
  row_start = static_cast<uint16_t>(g_sampler.next_start_ticks());
  if (set_pointer) row_start += kPointerTicks;
  row_start_part_q8 = 0;
}

void enter_row() { expect_address(); }

void end_row() {
  PacedRead& paced = g_sampler.paced();
  paced.done = static_cast<uint8_t>(paced.count - row_left);
  row_left = 0;
}

void complete_row(uint8_t low_byte) {
  g_sampler.even_queue().push(static_cast<int16_t>((row_high << 8) | low_byte));
  row_left = 0;
  g_sampler.paced().done = g_sampler.paced().count;
}

// Too late: the conversion has been overwritten, and the row ends here.
void resume_row() {
  row_held = false;
  if (static_cast<int16_t>(row_start - TCNT1) >= row_late) return start_again();
  TWCR = kStop;
  end_row();
  result->ok = true;
  result->end_ticks = timer::now_ticks();
  finish();
}

}  // namespace twi
}  // namespace opjoule

// The TWI interrupt (twi.cpp) comes here after each phase of a read of the row.
extern "C" {
void __vector_twi_row() __attribute__((signal, used, externally_visible));
void __vector_twi_row() { opjoule::twi::follow_row(opjoule_twi_status & 0xF8, opjoule_twi_data); }
}
