#include "sensors/shunt_temperature.h"

#include <doctest/doctest.h>

#include <cmath>

#include "sensors/ina219.h"
#include "tests/sensor_on_bus.h"

namespace opjoule::rig {
namespace {

constexpr double kOhm = 0.1, kTau_s = 5;
constexpr ShuntHeat kThickFilm{200e-6, 85, kTau_s};  // 1.7e-3 per square ampere
constexpr double kPerSquare_a2 = 200e-6 * 85 * kOhm;

struct Warm {
  Profile profile;
  Supply supply{profile};
  ShuntTemperature temperature{kThickFilm, kOhm};
  Warm() { supply.start_at(0); }
  double factor(double at_s) { return temperature.resistance_factor(supply, at_s - 1e-3, at_s); }
};

TEST_CASE("a shunt starts as warm as its first current keeps it") {
  Warm shunt;
  shunt.profile.add(0, 1.3, 5);
  // its own warmth raises the heat, too
  CHECK(shunt.factor(1e-3) - 1 == doctest::Approx(kPerSquare_a2 * 1.69 * 1.0029).epsilon(1e-4));
}

TEST_CASE("after a step the resistance follows with its time constant, whenever it is looked at") {
  Warm often, seldom;
  for (Warm* shunt : {&often, &seldom}) {
    shunt->profile.add(0, 0, 5);
    shunt->profile.add(1, 2, 5);
    shunt->factor(1e-3);
  }
  for (double at_s = 0.1; at_s < 1 + kTau_s; at_s += 0.1) often.factor(at_s);
  const double risen = kPerSquare_a2 * 4 * -std::expm1(-1.0);
  CHECK(often.factor(1 + kTau_s) - 1 == doctest::Approx(risen).epsilon(0.01));
  CHECK(seldom.factor(1 + kTau_s) == doctest::Approx(often.factor(1 + kTau_s)).epsilon(1e-5));
}

TEST_CASE("the sensor reads more through a warm shunt, and the profile's energy does not change") {
  Imperfections imperfections;
  imperfections.shunt_heat = kThickFilm;
  SensorOnBus<Ina219> bench(imperfections);
  bench.profile.add(0, 3, 5);
  bench.profile.add(60, 0, 5);
  bench.write(0, 0x399D, 0.01);
  const double code = static_cast<double>(bench.read(1, 0.1));
  CHECK(code / 30000 - 1 == doctest::Approx(kPerSquare_a2 * 9 * 1.0155).epsilon(0.01));
  CHECK(bench.profile.until(60).energy_j == doctest::Approx(900));
}

TEST_CASE("a shunt without a temperature coefficient stays as it is") {
  Profile profile;
  profile.add(0, 3, 5);
  Supply supply(profile);
  supply.start_at(0);
  ShuntTemperature cold({}, kOhm);
  CHECK(cold.resistance_factor(supply, 1, 2) == 1);
}

}  // namespace
}  // namespace opjoule::rig
