#include "twi.h"

#include <avr/interrupt.h>
#include <avr/io.h>

#include "instances.h"
#include "interrupt_lock.h"
#include "tick_clock.h"
#include "timer.h"
#include "twi_answers.h"
#include "twi_lines.h"

namespace opjoule {
namespace twi {

using protocol::Fault;

namespace {

const BusTransfer* current;     // the transfer under way
bool refused;                   // something was not acknowledged, or the bus was lost
Fault failure;                  // why, or why it hangs
volatile bool suspect = false;  // a device may have lost step
volatile uint8_t launches = 0;  // STARTs sent, modulo 256: watch() sees whether the bus moves

constexpr uint32_t kBusHz = 400000UL;
constexpr uint32_t kTimeoutTicks = 2000 * kTicksPerUs;  // the longest transfer takes 400 us
// From a bus event to its time stamp in the interrupt: 80 and 105 cycles, counted in the simulator.
constexpr uint16_t kLookDelayTicks = 10;
constexpr uint16_t kEndDelayTicks = 13;

// Where a transfer stands: what the bus is doing now. A START has no phase of its own: it takes
// one bit, and the code waits for it.
enum class Phase : uint8_t {
  address_to_write,
  pointer,
  high_byte,
  low_byte,
  address_to_read,
  byte,
  last_byte,
};

Phase phase;
uint8_t read_number;   // which register's value is coming in
uint8_t bytes_left;    // of it
uint8_t* into;         // result->bytes, where the next one goes
BusResult results[2];  // one for the sampler to work on while the next comes in
volatile bool busy = false;
bool working = false;             // the sampler is
bool waiting = false;             // a transfer has ended meanwhile
BusResult* result = &results[0];  // of the transfer under way

// Not acknowledged, or worse. The bus carries on with one byte for nobody, and is then stopped. A
// bus that was lost does not get that far; watch() finds it.
OPJOULE_INLINE void refuse(uint8_t status) {
  refused = true;
  failure = is_lost(status) ? Fault::i2c_bus_error : Fault::i2c_nack;
  answer_stop();
}

OPJOULE_INLINE void answer_start(bool to_read) {
  answer_address(static_cast<uint8_t>((current->address << 1) | to_read));
}

// The address is on its way.
OPJOULE_INLINE void enter_address(bool to_read) {
  if (to_read) {
    phase = Phase::address_to_read;
    bytes_left = (current->flags >> read_number) & 1 ? 3 : 2;
    answer_with(0, kGoAcknowledge, kMayRefuse);
  } else {
    phase = Phase::address_to_write;
    answer_with(current->registers[read_number], kGo);
  }
}

OPJOULE_INLINE void begin_byte() {
  phase = Phase::byte;
  answer_with(0, --bytes_left > 1 ? kGoAcknowledge : kGo);
}

// After every phase but the last; the interrupt has already answered it. Makes no calls, so that
// the interrupt saves few registers.
OPJOULE_INLINE void follow(uint8_t status, uint8_t data) {
  switch (phase) {
    case Phase::address_to_read:
      result->looks[read_number] = static_cast<uint16_t>(TCNT1 - kLookDelayTicks);
      if (status != kReadAcknowledged) return refuse(status);
      return begin_byte();
    case Phase::byte:
      *into++ = data;
      if (status != kDataReceived) return refuse(status);
      if (bytes_left > 1) return begin_byte();
      phase = Phase::last_byte;
      if (read_number + 1 >= current->reads) return answer_stop();
      return answer_start(false);
    case Phase::last_byte:
      *into++ = data;
      ++read_number;
      return enter_address(false);
    case Phase::address_to_write:
      if (status != kWriteAcknowledged) return refuse(status);
      phase = Phase::pointer;
      if (current->reads != 0) return answer_start(true);
      return answer_with(static_cast<uint8_t>(current->value >> 8), kGo);
    case Phase::pointer:
      if (current->reads != 0) {
        return enter_address(true);
      }
      if (status != kDataAcknowledged) return refuse(status);
      phase = Phase::high_byte;
      return answer_with(static_cast<uint8_t>(current->value), kGo);
    case Phase::high_byte:
      if (status != kDataAcknowledged) return refuse(status);
      phase = Phase::low_byte;
      return answer_stop();
    case Phase::low_byte:
      return;
  }
}

void launch(bool set_pointer) {
  // A STOP still under way ends within 2 bit times.
  for (uint8_t tries = 0; (TWCR & _BV(TWSTO)) && tries < 100; ++tries) {
  }
  TWCR = kStart;
  busy = true;
  ++launches;
  read_number = 0;
  into = result->bytes;
  refused = false;
  failure = Fault::i2c_timeout;
  const bool to_read = current->reads != 0 && !set_pointer;
  const uint8_t address = static_cast<uint8_t>((current->address << 1) | to_read);
  enter_address(to_read);
  await_start();
  TWDR = address;
  TWCR = kGo;
}

void launch_next() {
  current = &g_sampler.next_transfer();
  launch(g_sampler.next_sets_pointer());
}

// Starts the next transfer first, then takes in the results of this one. A function apart from
// finish(), which may be entered once more from here: so this frame is on the stack only once.
OPJOULE_NOINLINE void work() {
  working = true;
  while (waiting) {
    waiting = false;
    BusResult& ended = *result;
    result = result == &results[0] ? &results[1] : &results[0];
    const bool at_once = g_sampler.advance(ended);
    if (at_once || g_sampler.alerted()) {
      launch_next();
    } else {
      timer::set_alarm(g_sampler.next_start_ticks());
    }
    // This takes longer than a byte from the host: other interrupts are allowed, the next one of
    // this kind included.
    sei();
    g_sampler.digest(ended);
    cli();
  }
  working = false;
}

// A transfer has ended and the bus was told to stop.
void finish() {
  busy = false;
  if (!g_sampler.running()) return;
  waiting = true;
  if (!working) work();
}

void fail(Fault fault) {
  if (fault != Fault::i2c_nack) suspect = true;
  result->ok = false;
  result->fault = fault;
  result->end_ticks = timer::now_ticks();
  finish();
}

// After the last phase; the interrupt has told the bus to stop.
void end(uint8_t status, uint8_t data) {
  if (refused) return fail(failure);
  if (is_lost(status)) return fail(Fault::i2c_bus_error);
  result->end_ticks = timer::now_ticks() - kEndDelayTicks;
  *into = data;  // at most the ninth byte
  result->ok = true;
  if (status != kLastDataReceived && status != kDataAcknowledged) return fail(Fault::i2c_nack);
  finish();
}

// Releases the lines, frees SDA by clocks if a device holds it, and restarts the TWI. Main loop, no
// transfer under way.
void free_bus() {
  suspect = false;
  TWCR = 0;
  if (clear_lines()) g_faults.count(Fault::i2c_held, kNoSensor, timer::now_ticks());
  TWCR = _BV(TWEN);
}

}  // namespace

void begin() {
  // The pull-ups on the sensor's module hold the lines; these help a little where there are none.
  PORTC |= _BV(PC4) | _BV(PC5);
  TWSR = 0;
  TWBR = static_cast<uint8_t>((F_CPU / kBusHz - 16) / 2);  // 21.5.2, prescaler 1
  free_bus();
  // 12.2.1: INT0 at the falling edge, with pull-up.
  PORTD |= _BV(PD2);
  EICRA = _BV(ISC01);
}

BusResult transfer(const BusTransfer& transfer) {
  {
    InterruptLock lock;
    current = &transfer;
    launch(true);
  }
  while (busy) watch();
  return *result;
}

void start_sampling() {
  InterruptLock lock;
  EIFR = _BV(INTF0);
  EIMSK = g_sampler.active_count() == 1 ? _BV(INT0) : 0;
  timer::set_alarm(g_sampler.next_start_ticks());
}

void finish_sampling() {
  {
    InterruptLock lock;
    if (!busy) timer::cancel_alarm();
  }
  while (busy) watch();
}

void watch() {
  static uint8_t seen_launches;
  static uint32_t seen_ticks;
  if (!busy) {
    if (!suspect) return;
    InterruptLock lock;
    if (!busy) free_bus();
    return;
  }
  const uint32_t now = timer::now_ticks();
  if (seen_launches != launches) {
    seen_launches = launches;
    seen_ticks = now;
  }
  if (now - seen_ticks < kTimeoutTicks) return;
  InterruptLock lock;
  if (!busy || seen_launches != launches) return;
  free_bus();
  fail(failure);
}

}  // namespace twi

void on_alarm() {
  if (g_sampler.running()) twi::launch_next();
}

ISR(INT0_vect) {
  const uint32_t ticks = timer::now_ticks();
  if (!g_sampler.alert(ticks) || !timer::alarm_pending()) return;
  timer::cancel_alarm();
  twi::launch_next();
}

}  // namespace opjoule

extern "C" {
// Named in the assembly below, which link-time optimisation does not see.
#define NAMED_IN_ASSEMBLY __attribute__((used, externally_visible))
NAMED_IN_ASSEMBLY volatile uint8_t opjoule_twi_status;
NAMED_IN_ASSEMBLY volatile uint8_t opjoule_twi_data;
NAMED_IN_ASSEMBLY volatile uint8_t opjoule_twi_address;

// The rest of the interrupt, in C++: after a phase within a transfer, and after its last.
void __vector_twi_follow() __attribute__((signal, used, externally_visible));
void __vector_twi_follow() { opjoule::twi::follow(opjoule_twi_status & 0xF8, opjoule_twi_data); }

void __vector_twi_end() __attribute__((signal, used, externally_visible));
void __vector_twi_end() { opjoule::twi::end(opjoule_twi_status & 0xF8, opjoule_twi_data); }
}

// The bus waits from here to the write of TWCR: 25 cycles with the interrupt's entry, where a
// handler with the usual prologue takes 60 or more. An address to read from that nobody
// acknowledged is answered by a STOP. After a repeated START (1 bit, 40 cycles) it sends the
// address as well, waiting at most 110 us: TWINT comes even if the bus was lost, but not if it
// hangs. The status register is kept.
ISR(TWI_vect, ISR_NAKED) {
  __asm__ volatile(
      "push r24                     \n"
      "lds  r24, %[status]          \n"
      "sts  opjoule_twi_status, r24 \n"
      "sbic %[follows], 2           \n"
      "rjmp 5f                      \n"
      "lds  r24, %[data]            \n"
      "sts  opjoule_twi_data, r24   \n"
      "in   r24, %[next_data]       \n"
      "sts  %[data], r24            \n"
      "4: in r24, %[next_control]   \n"
      "sts  %[control], r24         \n"
      "sbis %[follows], 1           \n"
      "rjmp 3f                      \n"
      "push r25                     \n"
      "in   r25, __SREG__           \n"
      "push r25                     \n"
      "push r26                     \n"
      "push r27                     \n"
      "lds  r26, opjoule_twi_address \n"
      "ldi  r27, %[go]              \n"
      "ldi  r25, 0                  \n"
      "nop                          \n"  // a look falls on the START's end
      "1: dec r25                   \n"
      "breq 2f                      \n"
      "lds  r24, %[control]         \n"
      "sbrs r24, 7                  \n"
      "rjmp 1b                      \n"
      "2: sts %[data], r26          \n"
      "sts  %[control], r27         \n"
      "pop  r27                     \n"
      "pop  r26                     \n"
      "pop  r25                     \n"
      "out  __SREG__, r25           \n"
      "pop  r25                     \n"
      "3: pop  r24                  \n"
      "sbic %[follows], 0           \n"
      "jmp  __vector_twi_end        \n"
      "jmp  __vector_twi_follow     \n"
      "5: sbrs r24, 3               \n"  // 0x40 is acknowledged, 0x48 is not
      "rjmp 4b                      \n"
      "ldi  r24, %[stop]            \n"
      "sts  %[control], r24         \n"
      "pop  r24                     \n"
      "jmp  __vector_twi_end        \n" ::[status] "n"(_SFR_MEM_ADDR(TWSR)),
      [data] "n"(_SFR_MEM_ADDR(TWDR)), [control] "n"(_SFR_MEM_ADDR(TWCR)),
      [follows] "I"(_SFR_IO_ADDR(GPIOR0)), [next_data] "I"(_SFR_IO_ADDR(GPIOR2)),
      [next_control] "I"(_SFR_IO_ADDR(GPIOR1)), [go] "n"(opjoule::twi::kGo),
      [stop] "n"(opjoule::twi::kStop));
}
