#include "wire_bus.h"

#include <Arduino.h>
#include <Wire.h>

namespace opjoule {

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
  // Two ints: the one pair of types that no core's overloads leave ambiguous.
  if (Wire.requestFrom(static_cast<int>(transfer.address), kWanted) != kWanted) return result;
  for (int i = 0; i < kWanted; ++i) result.bytes[i] = static_cast<uint8_t>(Wire.read());
  result.ok = true;
  return result;
}

}  // namespace opjoule
