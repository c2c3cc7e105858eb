#include "options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <vector>

#include "errors.h"
#include "signal/csv.h"

namespace opjoule::rig {
namespace {

struct Option {
  std::string name, placeholder, help;
  std::function<void(Options&, const std::string&)> set;
};

[[noreturn]] void unfit(const std::string& name, const std::string& value,
                        const std::string& want) {
  throw RigError(name + " " + value + ": expected " + want + "; see rig-sim --help");
}

Option text(const char* name, const char* placeholder, const char* help,
            std::string Options::*member) {
  return {name, placeholder, help,
          [member](Options& options, const std::string& value) { options.*member = value; }};
}

using Place = std::function<void(Options&, double)>;

Option number(const char* name, const char* placeholder, const char* help, double lowest,
              double highest, Place place) {
  return {name, placeholder, help, [=](Options& options, const std::string& value) {
            double parsed = 0;
            if (!parse_number(value, parsed) || parsed < lowest || parsed > highest)
              unfit(name, value,
                    "a number from " + std::to_string(lowest) + " to " + std::to_string(highest));
            place(options, parsed);
          }};
}

using PlacePair = std::function<void(Options&, double first, double second)>;

/// Two numbers with a comma between them; the second must be above 0.
Option pair(const char* name, const char* placeholder, const char* help, double highest,
            PlacePair place) {
  return {name, placeholder, help, [=](Options& options, const std::string& value) {
            const auto parts = split(value, ',');
            double first = 0, second = 0;
            if (parts.size() != 2 || !parse_number(parts[0], first) ||
                !parse_number(parts[1], second) || std::abs(first) > highest || second <= 0)
              unfit(name, value,
                    std::string(placeholder) + ", the first within +-" + std::to_string(highest) +
                        ", the second above 0");
            place(options, first, second);
          }};
}

Option choice(const char* name, const char* first, const char* second, const char* help,
              std::function<void(Options&, bool second_chosen)> place) {
  return {name, std::string(first) + "|" + second, help,
          [=, one = std::string(first), two = std::string(second)](Options& options,
                                                                   const std::string& value) {
            if (value != one && value != two) unfit(name, value, one + " or " + two);
            place(options, value == two);
          }};
}

void set_seed(Options& options, const std::string& value) {
  long long seed = 0;
  if (!parse_integer(value, seed) || seed < 0) unfit("--seed", value, "a whole number from 0");
  options.seed = static_cast<std::uint64_t>(seed);
}

/// MODEL, MODEL@ADDRESS, or either with =PROFILE.
void add_sensor(Options& options, const std::string& value) {
  const char* want = "ina219, ina226 or ina228, then optionally @0x40 to @0x4F, then =PROFILE.csv";
  SensorChoice choice;
  const auto path = value.find('=');
  if (path != std::string::npos) choice.profile = value.substr(path + 1);
  const std::string chip = value.substr(0, path);
  const auto at = chip.find('@');
  choice.model = chip.substr(0, at);
  if (choice.model != "ina219" && choice.model != "ina226" && choice.model != "ina228")
    unfit("--sensor", value, want);
  if (at != std::string::npos) {
    char* end = nullptr;
    const long address = std::strtol(chip.c_str() + at + 1, &end, 0);
    if (*end != '\0' || address < 0x40 || address > 0x4F) unfit("--sensor", value, want);
    choice.address = static_cast<std::uint8_t>(address);
  }
  for (const auto& other : options.sensors)
    if (other.address == choice.address) unfit("--sensor", value, "an address not yet taken");
  options.sensors.push_back(choice);
}

void set_ready_flag(Options& options, const std::string& value) {
  ReadyFlag& flag = options.imperfections.ready_flag;
  if (value == "never-set")
    flag = ReadyFlag::kNeverSet;
  else if (value == "kept-by-read")
    flag = ReadyFlag::kKeptByRead;
  else if (value == "never-cleared")
    flag = ReadyFlag::kNeverCleared;
  else
    unfit("--ready-flag", value, "never-set, kept-by-read or never-cleared");
}

/// AT_S,CLOCKS, or boot,CLOCKS.
void set_held_data(Options& options, const std::string& value) {
  const auto parts = split(value, ',');
  HeldData held{-1, 0};
  long long clocks = 0;
  const bool placed = parts.size() == 2 &&
                      (parts[0] == "boot" || (parse_number(parts[0], held.at_s) && held.at_s >= 0));
  if (!placed || !parse_integer(parts[1], clocks) || clocks < 1)
    unfit("--hold-sda", value, "AT_S,CLOCKS or boot,CLOCKS, the clocks a whole number from 1");
  held.clocks = static_cast<std::uint64_t>(clocks);
  options.hold_sda = held;
}

std::vector<Option> input_options() {
  return {
      text("--elf", "FILE", "firmware for the ATmega328P at 16 MHz, as built by pio run -e uno",
           &Options::elf),
      text("--profile", "FILE",
           "CSV time_s,current_a,voltage_v; each row holds until the next, the "
           "last one's time is the end",
           &Options::profile),
      text("--sync", "FILE", "CSV time_s,level: the sync line; it starts low", &Options::sync),
      choice("--sync-pin", "D8", "D2",
             "where the sync line goes: D8 (default), or D2 for firmware on the Arduino framework",
             [](Options& o, bool d2) { o.sync_pin = d2 ? SyncPin::kD2 : SyncPin::kD8; }),
      text("--live", "FIFO",
           "instead of --profile: current, voltage and edges as they happen, lines "
           "p BOARD_NS A V, e BOARD_NS LEVEL, w BOARD_NS, q",
           &Options::live),
      number("--delay-ms", "D", "how far the rig runs behind a live input", 0, 3.6e6,
             [](Options& o, double v) { o.delay_s = v * 1e-3; }),
      text("--pty", "LINK",
           "symlink to the serial port, for the host to open; without it the port is "
           "only printed",
           &Options::pty),
      choice("--pace", "0", "1", "0: as fast as it can, 1: in real time (default)",
             [](Options& o, bool paced) { o.paced = paced; }),
      text("--truth", "FILE", "where the exact energies go, as JSON", &Options::truth),
      text("--course", "FILE",
           "with --live: CSV board_ns,energy_j, the exact energy up to each row of the input",
           &Options::course),
      text("--bus-log", "FILE",
           "CSV start_cycle,end_cycle,action,byte: everything that the I2C bus did",
           &Options::bus_log),
      choice("--start", "sampling", "boot",
             "time 0 of the profile: the meter's first sample (default) "
             "or the microcontroller's start",
             [](Options& o, bool boot) {
               o.start = boot ? ProfileStart::kBoot : ProfileStart::kSampling;
             }),
      {"--sensor", "MODEL[@ADDRESS][=FILE]",
       "ina219 (default), ina226 or ina228, at 0x40 (default) to 0x4F, with a profile of its own; "
       "may be given "
       "several times",
       add_sensor},
      number("--tail-s", "S",
             "how long the rig runs on without current after the end, for the "
             "meter to send the rest (default 0.5)",
             0, 1e6, [](Options& o, double v) { o.tail_s = v; }),
  };
}

/// The clocks of microcontroller and sensor, which can go wrong in the same ways.
std::vector<Option> clock_options() {
  return {
      number("--clock-error-ppm", "PPM",
             "error of the microcontroller's resonator; positive runs fast", -1e5, 1e5,
             [](Options& o, double v) { o.clock.error_ppm = v; }),
      pair("--clock-warmup", "PPM,TAU_S", "by how much it moves as it warms up, and how fast", 1e5,
           [](Options& o, double ppm, double tau_s) {
             o.clock.warmup_ppm = ppm;
             o.clock.warmup_tau_s = tau_s;
           }),
      number("--clock-wander", "PPM", "slow wander, at most so far to either side", 0, 1e5,
             [](Options& o, double v) { o.clock.wander_ppm = v; }),
      number("--sensor-clock-error-ppm", "PPM",
             "error of the sensor's own oscillator, which times its conversions", -5e5, 5e5,
             [](Options& o, double v) { o.imperfections.clock.error_ppm = v; }),
      pair("--sensor-clock-warmup", "PPM,TAU_S", "as --clock-warmup, of the sensor's", 1e5,
           [](Options& o, double ppm, double tau_s) {
             o.imperfections.clock.warmup_ppm = ppm;
             o.imperfections.clock.warmup_tau_s = tau_s;
           }),
      number("--sensor-clock-wander", "PPM", "as --clock-wander, of the sensor's", 0, 1e5,
             [](Options& o, double v) { o.imperfections.clock.wander_ppm = v; }),
  };
}

std::vector<Option> supply_options() {
  return {
      number("--supply-ohm", "OHM",
             "resistance between the profile's voltage and the board (default 0)", 0, 1e3,
             [](Options& o, double v) { o.feeder.resistance_ohm = v; }),
      pair("--ripple", "MV,HZ", "amplitude and frequency of a ripple of the board's voltage", 1e5,
           [](Options& o, double millivolts, double hertz) {
             o.feeder.ripple_v = millivolts * 1e-3;
             o.feeder.ripple_hz = hertz;
           }),
  };
}

std::vector<Option> imperfection_options() {
  return {
      number("--noise-uv", "UV", "r.m.s. white noise of a 532 us shunt conversion", 0, 1e6,
             [](Options& o, double v) { o.imperfections.noise_uv = v; }),
      number("--gain-error", "FRACTION", "of the shunt path: 0.005 reads 0.5 % too much", -1, 1,
             [](Options& o, double v) { o.imperfections.gain_error = v; }),
      number("--offset-uv", "UV", "of the shunt path, referred to input", -1e6, 1e6,
             [](Options& o, double v) { o.imperfections.offset_uv = v; }),
      number("--bus-gain-error", "FRACTION", "of the bus voltage", -1, 1,
             [](Options& o, double v) { o.imperfections.bus_gain_error = v; }),
      number("--bus-offset-mv", "MV", "of the bus voltage", -1e5, 1e5,
             [](Options& o, double v) { o.imperfections.bus_offset_v = v * 1e-3; }),
      number("--shunt-ohm", "OHM", "resistance of the shunt (default 0.1)", 1e-6, 1e3,
             [](Options& o, double v) { o.imperfections.shunt_ohm = v; }),
      choice("--quantisation", "round", "truncate", "how the sensor makes codes (default round)",
             [](Options& o, bool truncate) {
               o.imperfections.quantisation =
                   truncate ? Quantisation::kTruncate : Quantisation::kRound;
             }),
      {"--ready-flag", "never-set|kept-by-read|never-cleared",
       "how the INA219's conversion-ready flag differs from the data sheet's", set_ready_flag},
      number("--drop-bytes", "RATE", "probability that a byte to the host is lost", 0, 1,
             [](Options& o, double v) { o.drop_rate = v; }),
      {"--seed", "N", "of noise, wander and lost bytes (default 1)", set_seed},
      number("--reset-at", "S", "brown-out reset of the microcontroller at this profile time", 0,
             1e9, [](Options& o, double v) { o.reset_at_s = v; }),
      number("--reset-garbage", "BYTES",
             "so many random bytes go to the host at the start and at each reset, as from a boot "
             "loader",
             0, 1e6, [](Options& o, double v) { o.reset_garbage = static_cast<std::size_t>(v); }),
      {"--hold-sda", "AT_S|boot,CLOCKS",
       "a device holds SDA low from this profile time (or the start) until it has seen so many "
       "clocks",
       set_held_data},
      number("--unplug-at", "S", "the serial cable is pulled at this profile time", 0, 1e9,
             [](Options& o, double v) { o.unplug_at_s = v; }),
      number("--sensor-fail-at", "S", "the first sensor stops answering at this profile time", 0,
             1e9, [](Options& o, double v) { o.sensor_fail_at_s = v; }),
      number("--patience-s", "S",
             "a host that reads nothing for so long is taken to be gone "
             "(default 10)",
             0.01, 1e6, [](Options& o, double v) { o.patience_s = v; }),
  };
}

std::vector<Option> all_options() {
  auto options = input_options();
  for (auto&& group : {clock_options(), supply_options(), imperfection_options()})
    options.insert(options.end(), group.begin(), group.end());
  return options;
}

void check(const Options& options) {
  if (options.elf.empty())
    throw RigError("--elf is missing: give the firmware; see rig-sim --help");
  if (options.profile.empty() == options.live.empty())
    throw RigError("give one of --profile and --live; see rig-sim --help");
  if (options.truth.empty())
    throw RigError("--truth is missing: give a file for the exact energies; see rig-sim --help");
  for (const auto& sensor : options.sensors)
    if (options.sync_pin == SyncPin::kD2 && sensor.model != "ina219")
      throw RigError("--sync-pin D2 does not go with --sensor " + sensor.model +
                     ": its ALERT line is there");
  if (!options.course.empty() && options.live.empty())
    throw RigError("--course goes with --live: a profile's integral is known without it");
  if (options.live.empty()) return;
  if (!options.sync.empty()) throw RigError("--sync does not go with --live: send e lines instead");
  if (!options.paced) throw RigError("--pace 0 does not go with --live: the input is in real time");
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  const auto known = all_options();
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    std::optional<std::string> value;
    if (const auto cut = name.find('='); cut != std::string::npos) {
      value = name.substr(cut + 1);
      name.resize(cut);
    }
    const Option* option = nullptr;
    for (const auto& candidate : known)
      if (candidate.name == name) option = &candidate;
    if (!option) throw RigError("unknown option " + name + "; see rig-sim --help");
    if (!value && i + 1 < argc) value = argv[++i];
    if (!value) throw RigError(name + " needs a value: " + option->placeholder);
    option->set(options, *value);
  }
  if (options.sensors.empty()) options.sensors.emplace_back();
  check(options);
  return options;
}

std::string help_text() {
  std::string help =
      "rig-sim: the energy meter without hardware. Runs the real firmware in an AVR simulator, "
      "with a\n"
      "SIMULATED current sensor on its I2C bus, behind a serial port that the host opens as "
      "usual.\n\n"
      "  rig-sim --elf FIRMWARE.elf --profile PROFILE.csv [--sync EDGES.csv] [--pty LINK]\n"
      "          [--pace 0|1] --truth TRUTH.json [imperfections]\n\n"
      "The simulated processor starts with the first byte from the host. Example, in two "
      "terminals:\n\n"
      "  printf 'time_s,current_a,voltage_v\\n0,0.6,5.0\\n10,0,5.0\\n' > profile.csv\n"
      "  rig-sim --elf firmware.elf --profile profile.csv --pty /tmp/meter --truth truth.json\n"
      "  host/measure.py record --meter serial:/tmp/meter --out /tmp/trace\n\n"
      "truth.json then says 30 J, and the trace should too.\n\n";
  for (const auto& option : all_options()) {
    std::string head = "  " + option.name + " " + option.placeholder;
    head.resize(std::max<std::size_t>(head.size() + 2, 34), ' ');
    help += head + option.help + "\n";
  }
  return help +
         "\nExit codes: 0 the profile was played to its end; 1 the simulation failed; 2 bad "
         "input;\n"
         "130 or 143 ended by SIGINT or SIGTERM, the truth so far is written.\n"
         "File formats and what is modelled: docs/reference/rig-sim.md\n";
}

}  // namespace opjoule::rig
