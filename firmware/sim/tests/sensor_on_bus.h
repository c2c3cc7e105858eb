// A sensor on a profile, and the controller's side of the bus.
#pragma once

#include "sensors/imperfections.h"
#include "signal/supply.h"

namespace opjoule::rig {

template <typename Sensor>
struct SensorOnBus {
  explicit SensorOnBus(const Imperfections& imperfections = {}) : sensor(supply, imperfections, 1) {
    supply.start_at(0);
  }

  void point(std::uint8_t pointer, double now_s) {
    sensor.select(false, now_s);
    sensor.write(pointer, now_s);
  }
  /// Reads the register of `bytes` that the pointer stands on.
  std::uint64_t again(double now_s, int bytes = 2) {
    sensor.select(true, now_s);
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | sensor.read(now_s);
    return value;
  }
  std::uint64_t read(std::uint8_t pointer, double now_s, int bytes = 2) {
    point(pointer, now_s);
    return again(now_s, bytes);
  }
  void write(std::uint8_t pointer, std::uint16_t value, double now_s) {
    point(pointer, now_s);
    sensor.write(static_cast<std::uint8_t>(value >> 8), now_s);
    sensor.write(static_cast<std::uint8_t>(value), now_s);
  }

  Profile profile;
  Supply supply{profile};
  Sensor sensor;
};

}  // namespace opjoule::rig
