// How many CPU cycles a pair of shunt and bus voltage takes through the Arduino framework: by the
// framework's Wire alone and by the Adafruit library. Prints one line for each: its name, then the
// cycles of each call, counted by Timer1 with the framework's interrupts running. Run by
// host/bench/pair_cycles.py; for an AVR at 16 MHz.
#include <Adafruit_INA219.h>
#include <Arduino.h>
#include <Wire.h>

namespace {

constexpr uint8_t kCalls = 100;
constexpr uint32_t kBusHz = 400000;
constexpr uint8_t kAddress = 0x40;

Adafruit_INA219 chip(kAddress);
uint16_t cycles[kCalls];
volatile float keep;  // so that no call is optimised away

uint16_t read_by_wire(uint8_t reg) {
  Wire.beginTransmission(kAddress);
  Wire.write(reg);
  Wire.endTransmission(false);
  Wire.requestFrom(kAddress, static_cast<uint8_t>(2));
  const uint8_t high = static_cast<uint8_t>(Wire.read());
  return static_cast<uint16_t>((high << 8) | static_cast<uint8_t>(Wire.read()));
}

void wire_pair() {
  keep = read_by_wire(1);
  keep = read_by_wire(2);
}

void library_pair() {
  keep = chip.getShuntVoltage_mV();
  keep = chip.getBusVoltage_V();
}

void library_current_pair() {
  keep = chip.getCurrent_mA();
  keep = chip.getBusVoltage_V();
}

void measure(const char* name, void (*pair)()) {
  // A silence on the bus, by which the two are told apart in its log.
  Serial.flush();
  delay(50);
  for (uint8_t i = 0; i < kCalls; ++i) {
    const uint16_t begin = TCNT1;
    pair();
    cycles[i] = static_cast<uint16_t>(TCNT1 - begin);
  }
  Serial.print(name);
  for (uint8_t i = 0; i < kCalls; ++i) {
    Serial.print(' ');
    Serial.print(cycles[i]);
  }
  Serial.println();
}

}  // namespace

void setup() {
  Serial.begin(500000);
  TCCR1A = 0;
  TCCR1B = _BV(CS10);
  chip.begin();
  Wire.setClock(kBusHz);
  measure("wire", wire_pair);
  measure("library", library_pair);
  measure("library-current", library_current_pair);
  Serial.println("end");
}

void loop() {}
