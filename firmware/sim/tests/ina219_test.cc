#include "sensors/ina219.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/sensor_on_bus.h"

namespace opjoule::rig {
namespace {

constexpr double kPair_s = 1.064e-3, kShunt_s = 532e-6;

using Bench = SensorOnBus<Ina219>;

bool ready(Bench& bench, double now_s) { return bench.read(2, now_s) & 2; }
std::int16_t shunt(Bench& bench, double now_s) {
  return static_cast<std::int16_t>(bench.read(1, now_s));
}
double bus_v(Bench& bench, double now_s) { return (bench.read(2, now_s) >> 3) * 4e-3; }

TEST_CASE("after power-up the configuration is the data sheet's default and the chip converts") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  CHECK(bench.read(0, 1e-6) == 0x399F);
  CHECK_FALSE(ready(bench, kPair_s - 1e-6));
  CHECK(ready(bench, kPair_s + 1e-6));
  CHECK(shunt(bench, kPair_s + 1e-6) == 5000);
  CHECK(bus_v(bench, kPair_s + 1e-6) == doctest::Approx(5));
}

TEST_CASE("a conversion is the exact mean of the current over its own time") {
  Bench bench;
  bench.profile.add(0, 0, 5);
  bench.profile.add(100e-6, 1, 5);  // 133 us of 1 A in the first shunt conversion
  bench.profile.add(233e-6, 0, 5);
  bench.profile.add(kShunt_s, 3, 5);  // while the bus is converted: not seen
  bench.profile.add(kPair_s, 0.25, 5);
  CHECK(shunt(bench, kShunt_s + 1e-6) == 2500);
  CHECK(shunt(bench, kPair_s + kShunt_s + 1e-6) == 2500);
}

TEST_CASE("a burst beyond the range is cut off at every moment, not in the mean") {
  Bench bench;
  bench.profile.add(0, 1, 5);
  bench.profile.add(100e-6, 5, 5);  // 133 us of 5 A on a range of 3.2 A
  bench.profile.add(233e-6, 1, 5);
  CHECK(shunt(bench, kShunt_s + 1e-6) == 15500);  // 3/4 of 1 A and 1/4 of 3.2 A
}

TEST_CASE("shunt only converts the current without a gap") {
  Bench bench;
  bench.profile.add(0, 0.1, 5);
  bench.profile.add(0.01, 1.7, 5);
  bench.profile.add(0.0107, 0.3, 5);
  const double start_s = 1e-3;
  bench.write(0, 0x399D, start_s);
  double charge_c = 0;
  for (int i = 1; i <= 100; ++i)
    charge_c += shunt(bench, start_s + i * kShunt_s + 1e-9) * 1e-4 * kShunt_s;
  const double truth_c =
      (bench.profile.until(start_s + 100 * kShunt_s) - bench.profile.until(start_s)).charge_c;
  CHECK(charge_c == doctest::Approx(truth_c).epsilon(1e-4));
}

TEST_CASE("conversion ready is set after the pair and cleared by reading power or writing a mode") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  CHECK(ready(bench, kPair_s + 1e-6));
  CHECK(ready(bench, kPair_s + 2e-6));
  bench.read(3, kPair_s + 3e-6);
  CHECK_FALSE(ready(bench, kPair_s + 4e-6));
  CHECK(ready(bench, 2 * kPair_s + 1e-6));
  bench.write(0, 0x399F, 2 * kPair_s + 2e-6);
  CHECK_FALSE(ready(bench, 2 * kPair_s + 3e-6));
  CHECK(ready(bench, 3 * kPair_s + 3e-6));
  bench.write(0, 0x3998, 3 * kPair_s + 4e-6);  // power-down leaves it
  CHECK(ready(bench, 3 * kPair_s + 5e-6));
}

TEST_CASE("writing the configuration starts a new conversion") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  bench.write(0, 0x399F, 0.9 * kPair_s);
  CHECK_FALSE(ready(bench, 1.8 * kPair_s));
  CHECK(ready(bench, 1.9 * kPair_s + 1e-6));
}

TEST_CASE("conversion times and averages follow the configuration") {
  const struct {
    unsigned adc;
    double time_s;
  } kTable[] = {{0, 84e-6},     {1, 148e-6},     {2, 276e-6},     {3, 532e-6},
                {8, 532e-6},    {9, 1.064e-3},   {10, 2.128e-3},  {11, 4.256e-3},
                {12, 8.512e-3}, {13, 17.024e-3}, {14, 34.048e-3}, {15, 68.096e-3}};
  for (const auto& row : kTable) {
    CAPTURE(row.adc);
    Bench bench;
    bench.profile.add(0, 0.5, 5);
    bench.write(0, static_cast<std::uint16_t>(0x2005 | 3 << 11 | row.adc << 3), 1e-3);
    CHECK_FALSE(ready(bench, 1e-3 + row.time_s - 1e-6));
    CHECK(ready(bench, 1e-3 + row.time_s + 1e-6));
    CHECK(shunt(bench, 1e-3 + row.time_s + 1e-6) ==
          doctest::Approx(5000).epsilon(row.adc == 0 ? 1e-3 : 1e-9));
  }
}

TEST_CASE("lower resolutions have coarser steps") {
  Bench bench;
  bench.profile.add(0, 0.5003, 5);
  bench.write(0, 0x2005 | 3 << 11 | 0 << 3, 1e-3);
  CHECK(shunt(bench, 2e-3) == 5000);  // 9 bit: steps of 8 codes, 5003 is nearest to 5000
}

TEST_CASE("a triggered conversion is made once") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  bench.profile.add(5e-3, 1, 5);
  bench.write(0, 0x399B, 1e-3);
  CHECK(ready(bench, 1e-3 + kPair_s + 1e-6));
  bench.read(3, 1e-3 + kPair_s + 2e-6);
  CHECK_FALSE(ready(bench, 0.1));
  CHECK(shunt(bench, 0.1) == 5000);
}

TEST_CASE("power-down converts nothing and waking up takes 40 us") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  bench.write(0, 0x3998, 1e-6);
  CHECK_FALSE(ready(bench, 0.5));
  bench.write(0, 0x399F, 1);
  CHECK_FALSE(ready(bench, 1 + kPair_s + 30e-6));
  CHECK(ready(bench, 1 + kPair_s + 41e-6));
}

TEST_CASE("the range limits the shunt code at full scale of the gain set") {
  Bench bench;
  bench.profile.add(0, 10, 5);
  for (const unsigned pga : {0u, 1u, 2u, 3u}) {
    bench.write(0, static_cast<std::uint16_t>(0x219F | pga << 11), 0.1 * (pga + 1));
    CHECK(shunt(bench, 0.1 * (pga + 1) + 2e-3) == std::min(4000 << pga, 32000));
  }
}

TEST_CASE("the bus range limits the bus code") {
  Bench bench;
  bench.profile.add(0, 0.1, 30);
  bench.write(0, 0x199F, 0.1);
  CHECK(bus_v(bench, 0.102) == doctest::Approx(16));
  bench.write(0, 0x399F, 0.2);
  CHECK(bus_v(bench, 0.202) == doctest::Approx(30));
}

TEST_CASE("power and current follow the calibration register, and overflow is flagged") {
  Bench bench;
  bench.profile.add(0, 1, 5);
  CHECK(bench.read(4, 2e-3) == 0);
  bench.write(5, 4096, 2e-3);
  CHECK(bench.read(4, 5e-3) == 10000);
  CHECK(bench.read(3, 5e-3) == 10000 * 1250 / 5000);
  CHECK((bench.read(2, 5e-3) & 1) == 0);
  bench.write(5, 0xFFFF, 5e-3);
  CHECK((bench.read(2, 8e-3) & 1) == 1);
  CHECK(bench.read(5, 8e-3) == 0xFFFE);
}

TEST_CASE("reset brings back the defaults") {
  Bench bench;
  bench.profile.add(0, 1, 5);
  bench.write(5, 4096, 2e-3);
  bench.write(0, 0x8000, 3e-3);
  CHECK(bench.read(0, 3e-3 + 1e-6) == 0x399F);
  CHECK(bench.read(5, 3e-3 + 1e-6) == 0);
  CHECK(shunt(bench, 3e-3 + 1e-6) == 0);
}

TEST_CASE("the register pointer stays for further reads") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  CHECK(bench.read(1, 2e-3) == 5000);
  CHECK(bench.again(3e-3) == 5000);
}

TEST_CASE("gain, offset and shunt act on the shunt path only") {
  Imperfections imperfections;
  imperfections.gain_error = 0.01;
  imperfections.offset_uv = 100;
  Bench bench(imperfections);
  bench.profile.add(0, 0.5, 5);
  CHECK(shunt(bench, 2e-3) == 5060);
  CHECK(bus_v(bench, 2e-3) == doctest::Approx(5));
}

TEST_CASE("truncation loses what rounding keeps") {
  Imperfections imperfections;
  imperfections.quantisation = Quantisation::kTruncate;
  Bench truncating(imperfections), rounding;
  for (Bench* bench : {&truncating, &rounding}) bench->profile.add(0, 0.50009, 5.0039);
  CHECK(shunt(truncating, 2e-3) == 5000);
  CHECK(shunt(rounding, 2e-3) == 5001);
  CHECK(bus_v(truncating, 2e-3) == doctest::Approx(5.0));
  CHECK(bus_v(rounding, 2e-3) == doctest::Approx(5.004));
}

TEST_CASE("noise has the size asked for, and averaging reduces it") {
  const auto spread = [](std::uint16_t configuration, double period_s) {
    Imperfections imperfections;
    imperfections.noise_uv = 200;
    Bench bench(imperfections);
    bench.profile.add(0, 0.5, 5);
    bench.write(0, configuration, 1e-3);
    double sum = 0, squares = 0;
    constexpr int kCount = 2000;
    for (int i = 1; i <= kCount; ++i) {
      const double code = shunt(bench, 1e-3 + i * period_s + 1e-9);
      sum += code;
      squares += code * code;
    }
    CHECK(sum / kCount == doctest::Approx(5000).epsilon(1e-3));
    return std::sqrt(squares / kCount - sum / kCount * sum / kCount);
  };
  CHECK(spread(0x399D, 532e-6) == doctest::Approx(20).epsilon(0.1));
  CHECK(spread(0x39E5, 16 * 532e-6) == doctest::Approx(5).epsilon(0.15));
}

TEST_CASE("the chip's own oscillator sets its conversion time") {
  Imperfections imperfections;
  imperfections.clock.error_ppm = -90909.1;  // a tenth slower
  Bench bench(imperfections);
  bench.profile.add(0, 0.5, 5);
  CHECK_FALSE(ready(bench, kPair_s * 1.1 - 1e-6));
  CHECK(ready(bench, kPair_s * 1.1 + 1e-6));
}

TEST_CASE("missed and repeated readings are counted, from the first reading to the last") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  for (int i = 5; i <= 10; ++i) shunt(bench, i * kPair_s);
  CHECK(bench.sensor.shunt_count().missed() == 0);
  CHECK(bench.sensor.shunt_count().read_twice() == 0);
  shunt(bench, 10 * kPair_s + 1e-5);
  CHECK(bench.sensor.shunt_count().read_twice() == 1);
  shunt(bench, 13 * kPair_s);
  CHECK(bench.sensor.shunt_count().missed() == 2);
  bench.read(0, 30 * kPair_s);
  CHECK(bench.sensor.shunt_count().missed() == 2);
}

TEST_CASE("asking the bus register for the ready bit alone is no reading of the bus") {
  Bench bench;
  bench.profile.add(0, 0.5, 5);
  bench.write(0, 0x399D, 1e-3);  // shunt only
  for (int i = 4; i < 20; ++i) CHECK(ready(bench, i * kPair_s));
  CHECK(bench.sensor.bus_count().reads() == 0);
  bench.write(0, 0x399F, 0.1);
  CHECK(ready(bench, 0.11));
  CHECK(bench.sensor.bus_count().reads() == 1);
}

}  // namespace
}  // namespace opjoule::rig
