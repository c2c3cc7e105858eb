// The part of the Arduino framework that firmware/src/arduino uses, declared as its cores for other
// processors than the AVR do. For `./test firmware`, which checks that the sources compile so; it
// defines nothing, so nothing can be linked or run.
#ifndef OPJOULE_TEST_OTHER_CORE_ARDUINO_H_
#define OPJOULE_TEST_OTHER_CORE_ARDUINO_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include <algorithm>

using std::max;
using std::min;

enum PinStatus { LOW, HIGH, CHANGE };
enum PinMode { INPUT, OUTPUT, INPUT_PULLUP };
constexpr int SDA = 20;
constexpr int SCL = 21;

unsigned long micros();
int digitalRead(int pin);
void digitalWrite(int pin, PinStatus level);
void delayMicroseconds(unsigned int us);
void pinMode(int pin, PinMode mode);
void noInterrupts();
void interrupts();
int digitalPinToInterrupt(int pin);
void attachInterrupt(int interrupt, void (*handler)(), PinStatus mode);

struct SerialPort {
  void begin(unsigned long baud);
  int available();
  int read();
  int availableForWrite();
  size_t write(uint8_t byte);
  void flush();
};
extern SerialPort Serial;

#endif  // OPJOULE_TEST_OTHER_CORE_ARDUINO_H_
