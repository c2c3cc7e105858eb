#include "wire_bus.h"

#include <Arduino.h>
#include <Wire.h>

#include "bus_clear.h"

namespace opjoule {

namespace {

// The bus's pins while Wire is off: low as outputs, else left to their pull-ups.
struct WireLines {
  bool data_is_high() { return digitalRead(SDA) == HIGH; }
  void pull_clock() { pull(SCL); }
  void release_clock() { pinMode(SCL, INPUT_PULLUP); }
  void pull_data() { pull(SDA); }
  void release_data() { pinMode(SDA, INPUT_PULLUP); }
  void wait() { delayMicroseconds(5); }

 private:
  static void pull(int pin) {
    digitalWrite(pin, LOW);
    pinMode(pin, OUTPUT);
  }
};

}  // namespace

bool begin_wire(uint32_t hz) {
  WireLines lines;
  lines.release_data();
  lines.release_clock();
  const bool was_held = clear_bus(lines);
  Wire.begin();
  Wire.setClock(hz);
  return was_held;
}

BusResult wire_transfer(const BusTransfer& transfer) {
  BusResult result = {};
  result.fault = protocol::Fault::i2c_nack;
  Wire.beginTransmission(transfer.address);
  Wire.write(transfer.registers[0]);
  if (transfer.reads == 0) {
    Wire.write(static_cast<uint8_t>(transfer.value >> 8));
    Wire.write(static_cast<uint8_t>(transfer.value));
    result.ok = Wire.endTransmission() == 0;
    return result;
  }
  if (Wire.endTransmission() != 0) return result;
  constexpr int kWanted = 2;
  // Two ints: with other types the overloads of some cores are ambiguous.
  if (Wire.requestFrom(static_cast<int>(transfer.address), kWanted) != kWanted) return result;
  for (int i = 0; i < kWanted; ++i) result.bytes[i] = static_cast<uint8_t>(Wire.read());
  result.ok = true;
  return result;
}

}  // namespace opjoule
