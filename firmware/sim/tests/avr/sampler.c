/* Test program: on a byte from the host, samples an INA219 by polling and reports over the UART,
 * and reports input captures of both edges. Each report is six bytes: kind, four bytes, and a line
 * end. 'S' shunt register, bus register (big-endian) 'E' level, and 24 bits of timer 1 ticks at 2
 * MHz (big-endian) 'B' the byte received, echoed four times
 */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <util/twi.h>

static volatile uint8_t overflows;
static volatile uint8_t capture_level;
static volatile uint32_t capture_ticks;
static volatile uint8_t captured;

ISR(TIMER1_OVF_vect) { ++overflows; }

ISR(TIMER1_CAPT_vect) {
  uint16_t ticks = ICR1;
  uint8_t high = overflows;
  if ((TIFR1 & _BV(TOV1)) && ticks < 0x8000) ++high;
  capture_level = (TCCR1B & _BV(ICES1)) != 0;
  TCCR1B ^= _BV(ICES1);
  TIFR1 = _BV(ICF1);
  capture_ticks = (uint32_t)high << 16 | ticks;
  captured = 1;
}

static void send(uint8_t byte) {
  while (!(UCSR0A & _BV(UDRE0))) {
  }
  UDR0 = byte;
}

static void report(uint8_t kind, uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  send(kind);
  send(a);
  send(b);
  send(c);
  send(d);
  send('\n');
}

static void bus_action(uint8_t control) {
  TWCR = _BV(TWINT) | _BV(TWEN) | control;
  while (!(TWCR & _BV(TWINT))) {
  }
}

static void bus_stop(void) {
  TWCR = _BV(TWINT) | _BV(TWEN) | _BV(TWSTO);
  while (TWCR & _BV(TWSTO)) {
  }
}

static void bus_byte(uint8_t byte) {
  TWDR = byte;
  bus_action(0);
}

static void write_register(uint8_t pointer, uint16_t value) {
  bus_action(_BV(TWSTA));
  bus_byte(0x40 << 1);
  bus_byte(pointer);
  bus_byte(value >> 8);
  bus_byte(value);
  bus_stop();
}

static uint16_t read_register(uint8_t pointer) {
  uint16_t value;
  bus_action(_BV(TWSTA));
  bus_byte(0x40 << 1);
  bus_byte(pointer);
  bus_action(_BV(TWSTA));
  bus_byte(0x40 << 1 | 1);
  if (TW_STATUS == TW_MR_SLA_NACK) {
    bus_stop();
    return 0;
  }
  bus_action(_BV(TWEA));
  value = (uint16_t)TWDR << 8;
  bus_action(0);
  value |= TWDR;
  bus_stop();
  return value;
}

int main(void) {
  UBRR0 = 3; /* 500 kbaud with U2X, set after it on purpose */
  UCSR0A = _BV(U2X0);
  UCSR0B = _BV(RXEN0) | _BV(TXEN0);
  TWBR = 12; /* 400 kHz */
  TCCR1B = _BV(ICES1) | _BV(CS11);
  TIMSK1 = _BV(ICIE1) | _BV(TOIE1);
  PORTB |= _BV(PORTB0); /* pull-up on the sync input */
  sei();
  while (!(UCSR0A & _BV(RXC0))) {
  }
  write_register(0, 0x399F);
  for (;;) {
    if (UCSR0A & _BV(RXC0)) {
      uint8_t byte = UDR0;
      report('B', byte, byte, byte, byte);
    }
    if (captured) {
      uint32_t ticks;
      cli();
      ticks = capture_ticks;
      captured = 0;
      sei();
      report('E', capture_level, ticks >> 16, ticks >> 8, ticks);
    }
    uint16_t bus = read_register(2);
    if (bus & 2) {
      uint16_t shunt = read_register(1);
      read_register(3);
      report('S', shunt >> 8, shunt, bus >> 8, bus);
    }
  }
}
