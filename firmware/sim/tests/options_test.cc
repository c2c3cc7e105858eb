#include "options.h"

#include <doctest/doctest.h>

#include <vector>

#include "errors.h"

namespace opjoule::rig {
namespace {

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "rig-sim");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST_CASE("options are taken with a space or an equals sign") {
  const Options options = parse({"--elf", "a.elf", "--profile=p.csv", "--truth", "t.json",
                                 "--pace=0", "--clock-error-ppm", "-100", "--seed", "7"});
  CHECK(options.elf == "a.elf");
  CHECK(options.profile == "p.csv");
  CHECK_FALSE(options.paced);
  CHECK(options.clock.error_ppm == -100);
  CHECK(options.seed == 7);
}

TEST_CASE("what does not fit is refused") {
  CHECK_THROWS_AS(parse({"--nonsense", "1"}), RigError);
  CHECK_THROWS_AS(parse({"--pace", "2"}), RigError);
  CHECK_THROWS_AS(parse({"--drop-bytes", "1.5"}), RigError);
  CHECK_THROWS_AS(parse({"--noise-uv", "loud"}), RigError);
  CHECK_THROWS_AS(parse({"--clock-warmup", "30"}), RigError);
  CHECK_THROWS_AS(parse({"--clock-warmup", "30,0"}), RigError);
  CHECK_THROWS_AS(parse({"--ripple", "50,100,1"}), RigError);
  CHECK_THROWS_AS(parse({"--elf", "e", "--profile", "p", "--truth", "t", "--course", "c"}),
                  RigError);
  CHECK_THROWS_AS(parse({"--elf"}), RigError);
  CHECK_THROWS_AS(parse({"--profile", "p", "--truth", "t"}), RigError);
  CHECK_THROWS_AS(parse({"--elf", "e", "--truth", "t"}), RigError);
  CHECK_THROWS_AS(parse({"--elf", "e", "--profile", "p", "--live", "f", "--truth", "t"}), RigError);
  CHECK_THROWS_AS(parse({"--elf", "e", "--live", "f", "--truth", "t", "--pace", "0"}), RigError);
}

TEST_CASE("a held data line has a time or the start, and clocks") {
  const auto held = [](const char* value) {
    return parse({"--elf", "e", "--profile", "p", "--truth", "t", "--hold-sda", value}).hold_sda;
  };
  CHECK(held("1.5,9")->at_s == 1.5);
  CHECK(held("1.5,9")->clocks == 9);
  CHECK(held("boot,3")->at_s < 0);
  for (const char* value : {"9", "-1,9", "boot,0", "boot,1.5", "now,9", "1,2,3"})
    CHECK_THROWS_AS(held(value), RigError);
}

TEST_CASE("clock, supply and bus errors find their place") {
  const Options options = parse({"--elf",
                                 "e",
                                 "--profile",
                                 "p",
                                 "--truth",
                                 "t",
                                 "--clock-warmup",
                                 "-30,600",
                                 "--clock-wander",
                                 "3",
                                 "--sensor-clock-error-ppm",
                                 "100000",
                                 "--sensor-clock-warmup",
                                 "2e4,20",
                                 "--supply-ohm",
                                 "0.3",
                                 "--ripple",
                                 "50,120",
                                 "--bus-gain-error",
                                 "-0.004",
                                 "--bus-offset-mv",
                                 "8"});
  CHECK(options.clock.warmup_ppm == -30);
  CHECK(options.clock.warmup_tau_s == 600);
  CHECK(options.clock.wander_ppm == 3);
  CHECK(options.imperfections.clock.error_ppm == 100000);
  CHECK(options.imperfections.clock.warmup_tau_s == 20);
  CHECK(options.feeder.resistance_ohm == 0.3);
  CHECK(options.feeder.ripple_v == doctest::Approx(0.05));
  CHECK(options.feeder.ripple_hz == 120);
  CHECK(options.imperfections.bus_gain_error == -0.004);
  CHECK(options.imperfections.bus_offset_v == doctest::Approx(0.008));
}

TEST_CASE("help names every option of the interface") {
  CHECK(parse({"--help"}).help);
  for (const char* name : {"--elf", "--profile", "--sync", "--pty", "--pace", "--truth",
                           "--clock-error-ppm", "--noise-uv", "--gain-error", "--offset-uv",
                           "--drop-bytes", "--seed", "--live", "--delay-ms"})
    CHECK(help_text().find(std::string("  ") + name + " ") != std::string::npos);
}

}  // namespace
}  // namespace opjoule::rig
