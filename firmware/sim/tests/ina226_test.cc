// INA226 and INA228, which share their converter.
#include "sensors/ina226.h"

#include <doctest/doctest.h>

#include "sensors/ina228.h"
#include "tests/sensor_on_bus.h"

namespace opjoule::rig {
namespace {

using Bench226 = SensorOnBus<Ina226>;
using Bench228 = SensorOnBus<Ina228>;

constexpr double kRound226_s = 2 * 1.1e-3;  // of the default configuration
constexpr double kRound228_s = 3 * 1.052e-3;

std::int32_t signed_20(std::uint64_t register_24) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(register_24) << 8) >> 12;
}

TEST_CASE("INA226 names itself and starts with the data sheet's defaults") {
  Bench226 bench;
  CHECK(bench.read(0xFE, 1e-6) == 0x5449);
  CHECK(bench.read(0xFF, 1e-6) == 0x2260);
  CHECK(bench.read(0x00, 1e-6) == 0x4127);
}

TEST_CASE("INA226 converts shunt and bus in its own steps") {
  Bench226 bench;
  bench.profile.add(0, 0.5, 5);
  CHECK((bench.read(6, kRound226_s - 1e-6) & 8) == 0);
  CHECK((bench.read(6, kRound226_s + 1e-6) & 8) == 8);
  CHECK((bench.read(6, kRound226_s + 2e-6) & 8) == 0);  // reading the flag clears it
  CHECK(bench.read(1, kRound226_s + 3e-6) == 20000);    // 50 mV in steps of 2.5 uV
  CHECK(bench.read(2, kRound226_s + 3e-6) == 4000);     // 5 V in steps of 1.25 mV
}

TEST_CASE("INA226 saturates at 81.92 mV in both directions") {
  Bench226 bench;
  bench.profile.add(0, 2, 5);
  bench.profile.add(0.01, -2, 5);
  CHECK(bench.read(1, 0.009) == 0x7FFF);
  CHECK(bench.read(1, 0.02) == 0x8000);
}

TEST_CASE("INA226 averages over rounds of shunt and bus, exact in the mean") {
  Bench226 bench;
  const double start_s = 1e-3, round_s = 280e-6;
  bench.profile.add(0, 0.1, 5);
  // Four rounds of 140 us shunt and 140 us bus; a step in the middle of the third shunt conversion.
  bench.profile.add(start_s + 2 * round_s + 70e-6, 0.5, 5.2);
  bench.write(0, 0x4007 | 1 << 9, start_s);
  CHECK((bench.read(6, start_s + 4 * round_s - 1e-6) & 8) == 0);
  CHECK((bench.read(6, start_s + 4 * round_s + 1e-6) & 8) == 8);
  CHECK(bench.read(1, start_s + 4 * round_s + 2e-6) == (4000 + 4000 + 12000 + 20000) / 4);
  CHECK(bench.read(2, start_s + 4 * round_s + 2e-6) == (4000 + 4000 + 4160 + 4160) / 4);
}

TEST_CASE("INA226 calculates current and power by its calibration") {
  Bench226 bench;
  bench.profile.add(0, 0.5, 5);
  bench.write(5, 2048, 1e-6);
  CHECK(bench.read(4, 3e-3) == 20000);
  CHECK(bench.read(3, 3e-3) == 20000 * 4000 / 20000);
}

TEST_CASE("INA226 pulls ALERT while a conversion is ready and the pin is told to show it") {
  Bench226 bench;
  bench.profile.add(0, 0.5, 5);
  CHECK_FALSE(bench.sensor.alert_low(3e-3));
  bench.write(6, 0x0400, 4e-3);
  CHECK(bench.sensor.alert_low(4e-3));
  bench.read(6, 4.1e-3);
  CHECK_FALSE(bench.sensor.alert_low(4.1e-3));
  CHECK(bench.sensor.next_alert_change_s() == doctest::Approx(4 * 1.1e-3));
  CHECK(bench.sensor.alert_low(3 * kRound226_s + 1e-6));
}

TEST_CASE("INA226 triggered converts once, powered down not at all") {
  Bench226 bench;
  bench.profile.add(0, 0.5, 5);
  bench.write(0, 0x4123, 1e-3);
  CHECK((bench.read(6, 1e-3 + kRound226_s + 1e-6) & 8) == 8);
  CHECK((bench.read(6, 1) & 8) == 0);
  bench.write(0, 0x4120, 1);
  CHECK((bench.read(6, 2) & 8) == 0);
}

TEST_CASE("INA226 reset brings back the defaults") {
  Bench226 bench;
  bench.write(5, 2048, 1e-6);
  bench.write(6, 0x0400, 1e-6);
  bench.write(0, 0xC007, 2e-6);
  CHECK(bench.read(0, 3e-6) == 0x4127);
  CHECK(bench.read(5, 3e-6) == 0);
  CHECK(bench.read(6, 3e-6) == 0);
}

TEST_CASE("INA228 names itself and starts with the data sheet's defaults") {
  Bench228 bench;
  CHECK(bench.read(0x3E, 1e-6) == 0x5449);
  CHECK(bench.read(0x3F, 1e-6) == 0x2281);
  CHECK(bench.read(0x00, 1e-6) == 0);
  CHECK(bench.read(0x01, 1e-6) == 0xFB68);
  CHECK(bench.read(0x02, 1e-6) == 0x1000);
  CHECK(bench.read(0x0B, 1e-6) == 0x0001);
}

TEST_CASE("INA228 gives 20 bits of shunt and bus in both ranges") {
  Bench228 bench;
  bench.profile.add(0, 0.3, 5);
  CHECK(signed_20(bench.read(4, kRound228_s + 1e-6, 3)) == 96000);  // 30 mV in 312.5 nV
  CHECK((bench.read(5, kRound228_s + 1e-6, 3) >> 4) == 25600);      // 5 V in 195.3125 uV
  CHECK(bench.read(6, kRound228_s + 1e-6) == 3200);                 // 25 C
  bench.write(0, 0x0010, 0.1);
  CHECK(signed_20(bench.read(4, 0.1 + kRound228_s + 1e-6, 3)) == 384000);
  bench.profile.add(0.2, -9, 5);
  CHECK(signed_20(bench.read(4, 0.3, 3)) == -524288);
}

TEST_CASE("INA228 reports readiness and clears it when read") {
  Bench228 bench;
  bench.profile.add(0, 0.3, 5);
  CHECK((bench.read(0x0B, kRound228_s - 1e-6) & 2) == 0);
  CHECK((bench.read(0x0B, kRound228_s + 1e-6) & 2) == 2);
  CHECK((bench.read(0x0B, kRound228_s + 2e-6) & 2) == 0);
  bench.write(0x0B, 0x4000, kRound228_s + 3e-6);
  CHECK_FALSE(bench.sensor.alert_low(2 * kRound228_s - 1e-6));
  CHECK(bench.sensor.alert_low(2 * kRound228_s + 1e-6));
}

TEST_CASE("INA228 accumulates the data sheet's example of charge and energy") {
  // 8.1.2 with 6 A through 16.2 mOhm at 48 V: SHUNT_CAL 4050; here for one second, shunt and bus
  // only.
  Imperfections imperfections;
  imperfections.shunt_ohm = 0.0162;
  Bench228 bench(imperfections);
  bench.profile.add(0, 6, 48);
  bench.write(2, 4050, 1e-6);
  bench.write(1, static_cast<std::uint16_t>(0xB << 12 | 4 << 9 | 4 << 6), 2e-6);  // 540 us each
  bench.write(0, 0x4000, 3e-6);                                                   // clears the sums
  const double second_s = 1.0;
  CHECK(signed_20(bench.read(7, second_s, 3)) == doctest::Approx(314573).epsilon(1e-5));
  CHECK(bench.read(8, second_s, 3) == doctest::Approx(4718604).epsilon(1e-5));
  CHECK(bench.read(0x0A, second_s, 5) == doctest::Approx(314573).epsilon(2e-3));
  CHECK(bench.read(9, second_s, 5) == doctest::Approx(4718604 / 16).epsilon(2e-3));
}

TEST_CASE(
    "INA228's charge is the integral of the current in shunt-only mode, whatever the load does") {
  Bench228 bench;
  for (int i = 0; i < 1000; ++i) bench.profile.add(i * 1e-3, 0.2 + 0.001 * (i * 7919 % 1000), 5);
  bench.profile.end_at(1.0);
  bench.write(1, static_cast<std::uint16_t>(0xA << 12 | 0 << 6), 1e-9);  // 50 us
  bench.write(0, 0x4000, 2e-9);
  // CURRENT_LSB with SHUNT_CAL 4096 and 0.1 ohm: 3.125 uA.
  const double charge_c = static_cast<double>(bench.read(0x0A, 1.1, 5)) * 3.125e-6;
  CHECK(charge_c == doctest::Approx(bench.profile.until(1.0).charge_c).epsilon(1e-4));
}

TEST_CASE("INA228 waits for its start delay") {
  Bench228 bench;
  bench.write(0, 3 << 6, 1e-6);  // 6 ms
  CHECK((bench.read(0x0B, 6e-3 + kRound228_s - 1e-6) & 2) == 0);
  CHECK((bench.read(0x0B, 6e-3 + kRound228_s + 2e-6) & 2) == 2);
}

}  // namespace
}  // namespace opjoule::rig
