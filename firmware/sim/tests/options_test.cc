#include "options.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
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
  CHECK(options.pace == Pace::kFree);
  CHECK(options.clock.error_ppm == -100);
  CHECK(options.seed == 7);
}

TEST_CASE("a shunt that heats up is given in the units of its data sheet") {
  const Options options = parse({"--elf", "a.elf", "--profile=p.csv", "--truth", "t.json",
                                 "--shunt-ppm", "-75", "--shunt-thermal", "85,6.5"});
  CHECK(options.imperfections.shunt_heat.per_k == doctest::Approx(-75e-6));
  CHECK(options.imperfections.shunt_heat.k_per_w == 85);
  CHECK(options.imperfections.shunt_heat.tau_s == 6.5);
}

/// What is said of options that are refused, up to the remedy; empty if they are not.
std::string refusal(std::vector<const char*> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const RigError& error) {
    const std::string message = error.what();
    return message.substr(0, message.find(';'));
  }
  return "";
}

TEST_CASE("what does not fit is refused, with what was expected") {
  CHECK(refusal({"--nonsense", "1"}) == "unknown option --nonsense");
  CHECK(refusal({"word"}) == "unknown option word");
  CHECK(refusal({"--elf"}) == "--elf: 1 required FILE missing");
  CHECK(refusal({"--pace", "2"}) == "--pace 2: expected 0, 1 or host");
  CHECK(refusal({"--sync-pin", "1"}) == "--sync-pin 1: expected D8 or D2");
  CHECK(refusal({"--ready-flag", "no"}) ==
        "--ready-flag no: expected never-set, kept-by-read or never-cleared");
  CHECK(refusal({"--seed", "-1"}) == "--seed -1: expected a whole number from 0");
  CHECK(refusal({"--sensor", "ina226@0x50"}).starts_with("--sensor ina226@0x50: expected ina219"));
  CHECK(refusal({"--sensor", "ina219", "--sensor", "ina226"}) ==
        "--sensor ina226: expected an address not yet taken");
  CHECK(refusal({"--clock-warmup", "30,0"}) ==
        "--clock-warmup 30,0: expected PPM,TAU_S, the first within +-100000.000000, the second "
        "above 0");
  for (const char* value : {"30", "50,100,1", "100001,2"})
    CHECK(refusal({"--ripple", value}).starts_with("--ripple " + std::string(value) + ": "));
  for (const char* value : {"1.5", "-0.1", "much", "nan", "inf", "0x1", " 1", ""})
    CHECK(refusal({"--drop-bytes", value}) ==
          "--drop-bytes " + std::string(value) + ": expected a number from 0.000000 to 1.000000");
}

TEST_CASE("options that are missing or do not go together are refused") {
  CHECK(refusal({"--profile", "p", "--truth", "t"}).starts_with("--elf is missing"));
  CHECK(refusal({"--elf", "e", "--profile", "p"}).starts_with("--truth is missing"));
  CHECK(refusal({"--elf", "e", "--truth", "t"}) == "give one of --profile and --live");
  CHECK(refusal({"--elf", "e", "--profile", "p", "--live", "f", "--truth", "t"}) ==
        "give one of --profile and --live");
  CHECK(refusal({"--elf", "e", "--profile", "p", "--truth", "t", "--course", "c"})
            .starts_with("--course goes with --live"));
  CHECK(refusal({"--elf", "e", "--live", "f", "--truth", "t", "--pace", "0"})
            .starts_with("--pace 1 alone goes with --live"));
  CHECK(refusal({"--elf", "e", "--profile", "p", "--truth", "t", "--pace", "host"})
            .starts_with("--pace host and --grant go together"));
  CHECK(refusal({"--elf", "e", "--profile", "p", "--truth", "t", "--grant", "3"})
            .starts_with("--pace host and --grant go together"));
  CHECK(refusal({"--elf", "e", "--live", "f", "--truth", "t", "--sync", "s"})
            .starts_with("--sync does not go with --live"));
}

TEST_CASE("of an option given twice the last counts, but every sensor is kept") {
  const Options options =
      parse({"--elf", "a", "--elf", "b", "--profile", "p", "--truth", "t", "--seed", "1", "--seed",
             "2", "--sensor", "ina226", "--sensor=ina219@0x41=own.csv"});
  CHECK(options.elf == "b");
  CHECK(options.seed == 2);
  REQUIRE(options.sensors.size() == 2);
  CHECK(options.sensors[0].model == "ina226");
  CHECK(options.sensors[0].address == 0x40);
  CHECK(options.sensors[1].model == "ina219");
  CHECK(options.sensors[1].address == 0x41);
  CHECK(options.sensors[1].profile == "own.csv");
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
  const std::string help = parse({"--help"}).help;
  for (const char* name : {"--elf", "--profile", "--sync", "--pty", "--pace", "--truth",
                           "--clock-error-ppm", "--noise-uv", "--gain-error", "--offset-uv",
                           "--drop-bytes", "--seed", "--live", "--delay-ms"})
    CHECK(help.find(std::string("  ") + name + " ") != std::string::npos);
}

}  // namespace
}  // namespace opjoule::rig
