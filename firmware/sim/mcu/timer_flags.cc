#include "mcu/timer_flags.h"

namespace opjoule::rig {
namespace {

/// On the ATmega328P SBI changes only its one bit; simavr carries it out as a read and a write.
std::uint8_t meant(Mcu& mcu, std::uint8_t value) {
  const avr_t* avr = mcu.avr();
  const unsigned opcode = avr->flash[avr->pc] | avr->flash[avr->pc + 1] << 8;
  return (opcode & 0xFF00) == 0x9A00 ? static_cast<std::uint8_t>(1 << (opcode & 7)) : value;
}

void watch(Mcu& mcu, std::uint16_t address, std::vector<unsigned> vectors) {
  mcu.on_write(address, [&mcu, address, vectors](std::uint8_t value) {
    value = meant(mcu, value);
    for (const unsigned number : vectors) {
      avr_int_vector_t* vector = mcu.vector(number);
      if (value & 1 << vector->raised.bit && mcu.reg(address) & 1 << vector->raised.bit)
        avr_clear_interrupt(mcu.avr(), vector);
    }
  });
}

}  // namespace

void clear_timer_flags_singly(Mcu& mcu) {
  watch(mcu, 0x35, {14, 15, 16});      // TIFR0: compare A, compare B, overflow
  watch(mcu, 0x36, {10, 11, 12, 13});  // TIFR1: capture, compare A, compare B, overflow
  watch(mcu, 0x37, {7, 8, 9});         // TIFR2
}

}  // namespace opjoule::rig
