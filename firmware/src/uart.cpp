#include "uart.h"

#include <avr/interrupt.h>
#include <avr/io.h>

#include "instances.h"
#include "interrupt_lock.h"
#include "messages.h"
#include "tick_clock.h"
#include "timer.h"

namespace opjoule {
namespace uart {

namespace {

constexpr uint8_t kCapacity = 32;  // bytes; a power of two
constexpr uint8_t kMaxFrames = 4;  // their stamps; a power of two
constexpr uint32_t kByteTicks = kTicksPerSecond * 10 / protocol::kBaud;

uint8_t received[kCapacity];
volatile uint8_t received_head = 0;
volatile uint8_t received_tail = 0;

// When a 0x00 arrived, in the form that extend_ticks() takes: the interrupt has no time for more.
struct Arrival {
  uint16_t counter;
  uint16_t overflows;
  uint8_t timer_flags;
};
Arrival arrivals[kMaxFrames];  // of each 0x00 in `received`
uint8_t frame_head = 0;
volatile uint8_t frame_tail = 0;
volatile uint8_t overruns = 0;  // bytes lost or damaged, modulo 256
uint8_t seen_overruns = 0;
volatile uint16_t last_load = 0;  // counter when the last byte was given to the USART

}  // namespace

void begin() {
  UCSR0A = _BV(U2X0);
  UCSR0C = _BV(UCSZ01) | _BV(UCSZ00);
  UCSR0B = _BV(RXCIE0) | _BV(RXEN0) | _BV(TXEN0);
  // 19.3.1: with U2X baud = F_CPU / 8 / (UBRR + 1). Written last: simavr 1.6 takes U2X up here.
  UBRR0 = static_cast<uint16_t>(F_CPU / 8 / protocol::kBaud - 1);
}

// Needs no lock: if the interrupt disables itself between the read and the write here, it runs once
// more and finds the ring empty.
void start_transmit() { UCSR0B |= _BV(UDRIE0); }

bool idle() {
  if (!g_transmit_ring.empty()) return false;
  InterruptLock lock;
  // Two bytes' time after the last load both the buffer and the shift register are empty.
  return static_cast<uint16_t>(TCNT1 - last_load) >= 2 * kByteTicks + 8;
}

bool receive(uint8_t* byte, uint32_t* ticks) {
  if (overruns != seen_overruns) {
    seen_overruns = overruns;
    g_faults.count(protocol::Fault::receive_overrun, kNoSensor, timer::now_ticks());
  }
  if (received_head == received_tail) return false;
  *byte = received[received_tail & (kCapacity - 1)];
  if (*byte == 0) {
    const Arrival& arrival = arrivals[frame_tail & (kMaxFrames - 1)];
    *ticks = extend_ticks(arrival.counter, arrival.overflows, arrival.timer_flags & _BV(TOV1));
    frame_tail = static_cast<uint8_t>(frame_tail + 1);
  }
  received_tail = static_cast<uint8_t>(received_tail + 1);
  return true;
}

}  // namespace uart

ISR(USART_UDRE_vect) {
  if (g_transmit_ring.empty()) {
    UCSR0B &= static_cast<uint8_t>(~_BV(UDRIE0));
    return;
  }
  UDR0 = g_transmit_ring.pop();
  uart::last_load = TCNT1;
}

// Makes no calls and keeps little, so that it saves few registers: the bus waits for it.
ISR(USART_RX_vect) {
  using namespace uart;
  uint8_t lost = UCSR0A & (_BV(DOR0) | _BV(FE0));
  const uint8_t byte = UDR0;
  const uint8_t head = received_head;
  if (static_cast<uint8_t>(head - received_tail) == kCapacity) {
    lost = 1;
  } else if (byte != 0) {
    received[head & (kCapacity - 1)] = byte;
    received_head = static_cast<uint8_t>(head + 1);
  } else if (static_cast<uint8_t>(frame_head - frame_tail) == kMaxFrames) {
    lost = 1;
  } else {
    Arrival& arrival = arrivals[frame_head & (kMaxFrames - 1)];
    arrival.counter = TCNT1;
    arrival.overflows = timer::clock.overflows();
    arrival.timer_flags = TIFR1;
    frame_head = static_cast<uint8_t>(frame_head + 1);
    received[head & (kCapacity - 1)] = 0;
    received_head = static_cast<uint8_t>(head + 1);
  }
  if (lost) overruns = static_cast<uint8_t>(overruns + 1);
}

}  // namespace opjoule
