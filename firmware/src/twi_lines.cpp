#include "twi_lines.h"

#include <avr/io.h>
#include <util/delay.h>

#include "bus_clear.h"

namespace opjoule {
namespace twi {

namespace {

// A released pin has its pull-up. On the way to low it is made a plain input first, and so never
// driven high (14.2.3).
struct PortLines {
  bool data_is_high() { return PINC & _BV(PC4); }
  void pull_clock() {
    PORTC &= static_cast<uint8_t>(~_BV(PC5));
    DDRC |= _BV(PC5);
  }
  void release_clock() {
    DDRC &= static_cast<uint8_t>(~_BV(PC5));
    PORTC |= _BV(PC5);
  }
  void pull_data() {
    PORTC &= static_cast<uint8_t>(~_BV(PC4));
    DDRC |= _BV(PC4);
  }
  void release_data() {
    DDRC &= static_cast<uint8_t>(~_BV(PC4));
    PORTC |= _BV(PC4);
  }
  void wait() { _delay_us(5); }
};

}  // namespace

bool clear_lines() {
  PortLines lines;
  return clear_bus(lines);
}

}  // namespace twi
}  // namespace opjoule
