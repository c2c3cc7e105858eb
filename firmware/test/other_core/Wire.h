// As Arduino.h beside it: the Wire library as ESP32's core declares it, with both overloads of
// requestFrom.
#ifndef OPJOULE_TEST_OTHER_CORE_WIRE_H_
#define OPJOULE_TEST_OTHER_CORE_WIRE_H_

#include <stddef.h>
#include <stdint.h>

struct TwoWire {
  bool begin();
  bool setClock(uint32_t frequency_hz);
  void beginTransmission(uint8_t address);
  uint8_t endTransmission(bool stop = true);
  size_t requestFrom(uint8_t address, size_t bytes);
  size_t requestFrom(int address, int bytes);
  size_t write(uint8_t byte);
  int read();
};
extern TwoWire Wire;

#endif  // OPJOULE_TEST_OTHER_CORE_WIRE_H_
