#include "signal/oscillator.h"

#include <doctest/doctest.h>

#include <cmath>
#include <initializer_list>

namespace opjoule::rig {
namespace {

TEST_CASE("a steady oscillator is off by its error alone") {
  const Oscillator clock(16e6, {.error_ppm = 5000}, 1);
  CHECK(clock.count_at(10) == doctest::Approx(160.8e6).epsilon(1e-15));
  CHECK(clock.time_s(160.8e6) == doctest::Approx(10).epsilon(1e-15));
  CHECK(clock.hz_at(3) == doctest::Approx(16.08e6));
}

TEST_CASE("warming up moves the rate by the whole amount, by two thirds after one time constant") {
  const Oscillator clock(1e6, {.error_ppm = -100, .warmup_ppm = 30, .warmup_tau_s = 600}, 1);
  CHECK(clock.hz_at(0) == doctest::Approx(1e6 - 100));
  CHECK(clock.hz_at(600) == doctest::Approx(1e6 - 100 + 30 * (1 - std::exp(-1))));
  CHECK(clock.hz_at(1e5) == doctest::Approx(1e6 - 70));
  // The whole way lost while it was cold: 30 ppm for one time constant.
  CHECK(clock.count_at(1e5) - 1e5 * (1e6 - 70) == doctest::Approx(-30.0 * 600).epsilon(1e-6));
}

TEST_CASE("a wandering clock keeps within its limit and moves") {
  const Oscillator clock(1e6, {.wander_ppm = 3}, 4);
  double least = 1e9, most = 0;
  for (int s = 0; s < 7200; s += 10) {
    least = std::min(least, clock.hz_at(s));
    most = std::max(most, clock.hz_at(s));
  }
  CHECK(least >= 1e6 - 3);
  CHECK(most <= 1e6 + 3);
  CHECK(most - least > 1.5);
}

TEST_CASE("counts and times are each other's inverse, and counts are the integral of the rate") {
  const Oscillator clock(
      16e6, {.error_ppm = -4000, .warmup_ppm = 500, .warmup_tau_s = 60, .wander_ppm = 20}, 9);
  for (const double s : {1e-6, 0.5, 30.0, 600.0, 3600.0, 36000.0}) {
    CHECK(clock.time_s(clock.count_at(s)) == doctest::Approx(s).epsilon(1e-13));
    const double slope_hz = (clock.count_at(s + 1e-3) - clock.count_at(s)) / 1e-3;
    CHECK(slope_hz == doctest::Approx(clock.hz_at(s)).epsilon(1e-7));
  }
}

TEST_CASE("another seed wanders otherwise") {
  const OscillatorErrors errors{.wander_ppm = 3};
  CHECK(Oscillator(1e6, errors, 1).count_at(900) != Oscillator(1e6, errors, 2).count_at(900));
  CHECK(Oscillator(1e6, errors, 1).count_at(900) == Oscillator(1e6, errors, 1).count_at(900));
}

}  // namespace
}  // namespace opjoule::rig
