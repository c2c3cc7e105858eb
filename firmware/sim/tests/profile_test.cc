#include "signal/profile.h"

#include <doctest/doctest.h>

#include <numbers>
#include <random>

#include "errors.h"
#include "signal/supply.h"
#include "tests/temporary_file.h"

namespace opjoule::rig {
namespace {

Profile two_steps() {
  Profile profile;
  profile.add(0, 1, 5);
  profile.add(2, 3, 4);
  profile.end_at(5);
  return profile;
}

TEST_CASE("a profile integrates its steps exactly") {
  const Profile profile = two_steps();
  const Integrals all = profile.until(5) - profile.until(0);
  CHECK(all.charge_c == doctest::Approx(2 * 1 + 3 * 3));
  CHECK(all.energy_j == doctest::Approx(2 * 5 + 3 * 12));
  CHECK(all.volt_seconds == doctest::Approx(2 * 5 + 3 * 4));
}

TEST_CASE("outside of its rows no current flows and the voltage stays") {
  const Profile profile = two_steps();
  CHECK((profile.until(0) - profile.until(-3)).charge_c == 0);
  CHECK((profile.until(0) - profile.until(-3)).volt_seconds == doctest::Approx(15));
  CHECK((profile.until(9) - profile.until(5)).charge_c == 0);
  CHECK((profile.until(9) - profile.until(5)).volt_seconds == doctest::Approx(16));
}

TEST_CASE("the energy of a stretch is the sum of its parts, wherever it is cut") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> step(1e-5, 0.01), amps(0, 3);
  Profile profile;
  double end_s = 0;
  for (; end_s < 20; end_s += step(random)) profile.add(end_s, amps(random), 5);
  profile.end_at(end_s);
  const double whole = profile.until(end_s).energy_j;
  for (int i = 0; i < 100; ++i) {
    const double cut_s = end_s * i / 100 + 1e-6;
    const double parts =
        profile.until(cut_s).energy_j + (profile.until(end_s) - profile.until(cut_s)).energy_j;
    CHECK(parts == doctest::Approx(whole).epsilon(1e-12));
  }
}

TEST_CASE("the energy is that behind the supply's resistance and ripple") {
  const Feeder feeder{0.3, 0.05, 50};
  Profile profile(feeder);
  profile.add(0, 2, 5);
  profile.add(0.505, 1, 5);  // half a period of the ripple more: its integral does not vanish
  profile.end_at(1);
  const double ripple_vs = 0.05 / (std::numbers::pi * 50);
  const Integrals all = profile.until(1);
  CHECK(all.volt_seconds == doctest::Approx(4.4 * 0.505 + 4.7 * 0.495));
  CHECK(profile.until(0.01).volt_seconds == doctest::Approx(4.4 * 0.01 + ripple_vs));
  CHECK(all.charge_c == doctest::Approx(2 * 0.505 + 0.495));
  const double to_board_j = 2 * 4.4 * 0.505 + 4.7 * 0.495;
  CHECK(all.energy_j == doctest::Approx(to_board_j + ripple_vs / 2 * (2 - 1)).epsilon(1e-12));
  CHECK((profile.until(3) - profile.until(2)).volt_seconds == doctest::Approx(5));
}

TEST_CASE("a row that comes late takes its place") {
  Profile ordered, shuffled;
  for (const double t : {0., 1., 2., 3.}) ordered.add(t, t + 1, 5);
  for (const double t : {0., 3., 1., 2.}) shuffled.add(t, t + 1, 5);
  for (const double t : {0.5, 1.5, 2.5, 4.0})
    CHECK(shuffled.until(t).energy_j == doctest::Approx(ordered.until(t).energy_j));
}

TEST_CASE("forgetting the past changes no later integral") {
  Profile profile = two_steps();
  const Integrals before = profile.until(4);
  profile.forget_before(3);
  CHECK(profile.size() == 2);
  CHECK(profile.until(4).energy_j == before.energy_j);
}

TEST_CASE("a supply sees the profile from its start on") {
  const Profile profile = two_steps();
  Supply supply(profile);
  CHECK(supply.mean_current_a(10, 11) == 0);
  CHECK(supply.mean_voltage_v(10, 11) == doctest::Approx(5));
  supply.start_at(10);
  CHECK(supply.mean_current_a(9, 11) == doctest::Approx(0.5));
  CHECK(supply.mean_current_a(11, 13) == doctest::Approx(2));
  CHECK(supply.profile_s(12.5) == 2.5);
}

TEST_CASE("a profile file may have a header, comments and Windows line ends") {
  const TemporaryFile file("time_s,current_a,voltage_v\r\n# idle\n0, 0.5, 5.0\r\n\n10,0,5\n");
  const Profile profile = Profile::read(file.path());
  CHECK(profile.last_s() == 10);
  CHECK(profile.until(10).energy_j == doctest::Approx(25));
}

TEST_CASE("a malformed profile is refused with file and line") {
  const auto refusal = [](const std::string& content) -> std::string {
    const TemporaryFile file(content);
    try {
      Profile::read(file.path());
    } catch (const RigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("0,1,5\n1,x,5\n").find("line 2: 'x' is not a number") != std::string::npos);
  CHECK(refusal("0,1,5\n1,nan,5\n").find("'nan' is not a number") != std::string::npos);
  CHECK(refusal("0,1\n").find("2 fields") != std::string::npos);
  CHECK(refusal("0,1,5\n0,1,5\n").find("out of order") != std::string::npos);
  CHECK(refusal("-1,1,5\n0,1,5\n").find("out of order") != std::string::npos);
  CHECK(refusal("0,1,5\n").find("at least two rows") != std::string::npos);
  CHECK_THROWS_AS(Profile::read("/nowhere/profile.csv"), RigError);
}

}  // namespace
}  // namespace opjoule::rig
