#include "options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "errors.h"
#include "sensors/models.h"
#include "signal/csv.h"

namespace opjoule::rig {
namespace {

constexpr auto kAbout =
    "rig-sim: the energy meter without hardware. Runs the real firmware in an AVR simulator, with "
    "a\n"
    "SIMULATED current sensor on its I2C bus, behind a serial port that the host opens as "
    "usual.\n\n"
    "  rig-sim --elf FIRMWARE.elf --profile PROFILE.csv [--sync EDGES.csv] [--pty LINK]\n"
    "          [--pace 0|1|host] --truth TRUTH.json [imperfections]\n\n"
    "The simulated processor starts with the first byte from the host. Example, in two "
    "terminals:\n\n"
    "  printf 'time_s,current_a,voltage_v\\n0,0.6,5.0\\n10,0,5.0\\n' > profile.csv\n"
    "  rig-sim --elf firmware.elf --profile profile.csv --pty /tmp/meter --truth truth.json\n"
    "  host/measure.py record --meter serial:/tmp/meter --out /tmp/trace\n\n"
    "truth.json then says 30 J, and the trace should too.\n";
constexpr auto kFooter =
    "Exit codes: 0 the profile was played to its end; 1 the simulation failed; 2 bad input;\n"
    "130 or 143 ended by SIGINT or SIGTERM, the truth so far is written.\n"
    "File formats and what is modelled: docs/reference/rig-sim.md";

[[noreturn]] void unfit(const std::string& name, const std::string& value,
                        const std::string& want) {
  throw RigError(name + " " + value + ": expected " + want + "; see rig-sim --help");
}

/// An option whose value `take` keeps or refuses; after a refusal the user is told what was
/// expected. Called each time the option is given.
void option(CLI::App& app, const std::string& name, const std::string& placeholder,
            const std::string& help, const std::string& want,
            std::function<bool(const std::string& value)> take) {
  app.add_option_function<std::string>(
         name,
         [=](const std::string& value) {
           if (!take(value)) unfit(name, value, want);
         },
         help)
      ->type_name(placeholder)
      ->trigger_on_parse();
}

void text(CLI::App& app, const char* name, const char* placeholder, std::string& target,
          const char* help) {
  app.add_option(name, target, help)->type_name(placeholder)->take_last();
}

struct Range {
  double lowest, highest;
};

/// A finite number; the target gets `scale` times its value.
template <typename Target>
void number(CLI::App& app, const char* name, const char* placeholder, Range range, Target& target,
            const char* help, double scale = 1) {
  const std::string want =
      "a number from " + std::to_string(range.lowest) + " to " + std::to_string(range.highest);
  option(app, name, placeholder, help, want, [=, &target](const std::string& value) {
    double parsed = 0;
    if (!parse_number(value, parsed) || parsed < range.lowest || parsed > range.highest)
      return false;
    target = static_cast<Target>(parsed * scale);
    return true;
  });
}

/// Two numbers with a comma between them, the first within +-`highest`, the second above 0; the
/// first target gets `scale` times its value.
void pair(CLI::App& app, const char* name, const std::string& placeholder, double highest,
          double& first_target, double& second_target, const char* help, double scale = 1) {
  const std::string want =
      placeholder + ", the first within +-" + std::to_string(highest) + ", the second above 0";
  option(app, name, placeholder, help, want, [=, &first_target, &second_target](const auto& value) {
    const auto parts = split(value, ',');
    double first = 0, second = 0;
    if (parts.size() != 2 || !parse_number(parts[0], first) || !parse_number(parts[1], second) ||
        std::abs(first) > highest || second <= 0)
      return false;
    first_target = first * scale;
    second_target = second;
    return true;
  });
}

/// One of several words, each with what it stands for.
template <typename Target>
void choice(CLI::App& app, const char* name,
            const std::vector<std::pair<std::string, Target>>& words, Target& target,
            const char* help) {
  std::string placeholder, want;
  for (const auto& [word, meaning] : words) {
    const bool last = word == words.back().first;
    placeholder += (placeholder.empty() ? "" : "|") + word;
    want += (want.empty() ? "" : last ? " or " : ", ") + word;
  }
  option(app, name, placeholder, help, want, [=, &target](const std::string& value) {
    for (const auto& [word, meaning] : words) {
      if (word != value) continue;
      target = meaning;
      return true;
    }
    return false;
  });
}

bool take_seed(std::uint64_t& seed, const std::string& value) {
  long long parsed = 0;
  if (!parse_integer(value, parsed) || parsed < 0) return false;
  seed = static_cast<std::uint64_t>(parsed);
  return true;
}

/// MODEL, MODEL@ADDRESS, or either with =PROFILE.
bool take_sensor(std::vector<SensorChoice>& sensors, const std::string& value) {
  SensorChoice sensor;
  const auto path = value.find('=');
  if (path != std::string::npos) sensor.profile = value.substr(path + 1);
  const std::string chip = value.substr(0, path);
  const auto at = chip.find('@');
  sensor.model = chip.substr(0, at);
  if (!is_model(sensor.model)) return false;
  if (at != std::string::npos) {
    char* end = nullptr;
    const long address = std::strtol(chip.c_str() + at + 1, &end, 0);
    if (*end != '\0' || address < 0x40 || address > 0x4F) return false;
    sensor.address = static_cast<std::uint8_t>(address);
  }
  for (const auto& other : sensors)
    if (other.address == sensor.address) unfit("--sensor", value, "an address not yet taken");
  sensors.push_back(sensor);
  return true;
}

/// AT_S,CLOCKS, or boot,CLOCKS.
bool take_held_data(std::optional<HeldData>& target, const std::string& value) {
  const auto parts = split(value, ',');
  HeldData held{-1, 0};
  long long clocks = 0;
  const bool placed = parts.size() == 2 &&
                      (parts[0] == "boot" || (parse_number(parts[0], held.at_s) && held.at_s >= 0));
  if (!placed || !parse_integer(parts[1], clocks) || clocks < 1) return false;
  held.clocks = static_cast<std::uint64_t>(clocks);
  target = held;
  return true;
}

/// AT_S,FOR_S.
bool take_absence(std::vector<Absence>& absences, const std::string& value) {
  const auto parts = split(value, ',');
  Absence absence{};
  if (parts.size() != 2 || !parse_number(parts[0], absence.at_s) || absence.at_s < 0 ||
      !parse_number(parts[1], absence.for_s) || absence.for_s <= 0)
    return false;
  absences.push_back(absence);
  return true;
}

void add_inputs(CLI::App& app, Options& o) {
  text(app, "--elf", "FILE", o.elf,
       "firmware for the ATmega328P at 16 MHz, as built by pio run -e uno");
  text(app, "--profile", "FILE", o.profile,
       "CSV time_s,current_a,voltage_v; each row holds until the next, the last one's time is the "
       "end");
  text(app, "--sync", "FILE", o.sync, "CSV time_s,level: the sync line; it starts low");
  choice<SyncPin>(app, "--sync-pin", {{"D8", SyncPin::kD8}, {"D2", SyncPin::kD2}}, o.sync_pin,
                  "where the sync line goes: D8 (default), or D2 for firmware on the Arduino "
                  "framework");
  text(app, "--live", "FIFO", o.live,
       "instead of --profile: current, voltage and edges as they happen, lines p BOARD_NS A V, "
       "e BOARD_NS LEVEL, w BOARD_NS, q");
  number(app, "--delay-ms", "D", {0, 3.6e6}, o.delay_s, "how far the rig runs behind a live input",
         1e-3);
  choice<Pace>(app, "--pace", {{"0", Pace::kFree}, {"1", Pace::kReal}, {"host", Pace::kHost}},
               o.pace,
               "0: as fast as it can, 1: in real time (default), host: by the steps that --grant "
               "brings");
  number(app, "--grant", "FD", {0, 1e6}, o.grant_fd,
         "with --pace host: open socket on which the host writes pass NS or read NS, and reads the "
         "time reached");
  choice<ProfileStart>(
      app, "--start", {{"sampling", ProfileStart::kSampling}, {"boot", ProfileStart::kBoot}},
      o.start,
      "time 0 of the profile: the meter's first sample (default) or the microcontroller's start");
  option(
      app, "--sensor", "MODEL[@ADDRESS][=FILE]",
      "one of " + model_names() +
          " (default ina219), at 0x40 (default) to 0x4F, with a profile of its own; may be given "
          "several times",
      model_names() + ", then optionally @0x40 to @0x4F, then =PROFILE.csv",
      [&o](const std::string& value) { return take_sensor(o.sensors, value); });
  number(app, "--tail-s", "S", {0, 1e6}, o.tail_s,
         "how long the rig runs on without current after the end, for the meter to send the rest "
         "(default 0.5)");
  option(app, "--seed", "N", "of noise, wander and lost bytes (default 1)", "a whole number from 0",
         [&o](const std::string& value) { return take_seed(o.seed, value); });
}

void add_outputs(CLI::App& app, Options& o) {
  text(app, "--pty", "LINK", o.pty,
       "symlink to the serial port, for the host to open; without it the port is only printed");
  text(app, "--truth", "FILE", o.truth, "where the exact energies go, as JSON");
  text(app, "--course", "FILE", o.course,
       "with --live: CSV board_ns,energy_j, the exact energy over time");
  text(app, "--bus-log", "FILE", o.bus_log,
       "CSV start_cycle,end_cycle,action,byte: everything that the I2C bus did");
  text(app, "--conversions", "FILE", o.conversions,
       "CSV start_s,end_s in rig time: every shunt conversion of a first sensor that is an INA219");
}

/// The clocks of microcontroller and sensor, which have the same kinds of error; and the supply.
void add_clocks_and_supply(CLI::App& app, Options& o) {
  OscillatorErrors& sensor = o.imperfections.clock;
  number(app, "--clock-error-ppm", "PPM", {-1e5, 1e5}, o.clock.error_ppm,
         "error of the microcontroller's resonator; positive runs fast");
  pair(app, "--clock-warmup", "PPM,TAU_S", 1e5, o.clock.warmup_ppm, o.clock.warmup_tau_s,
       "by how much it moves as it warms up, and how fast");
  number(app, "--clock-wander", "PPM", {0, 1e5}, o.clock.wander_ppm,
         "slow wander, at most so far to either side");
  number(app, "--sensor-clock-error-ppm", "PPM", {-5e5, 5e5}, sensor.error_ppm,
         "error of the sensor's own oscillator, which times its conversions");
  pair(app, "--sensor-clock-warmup", "PPM,TAU_S", 1e5, sensor.warmup_ppm, sensor.warmup_tau_s,
       "as --clock-warmup, of the sensor's");
  number(app, "--sensor-clock-wander", "PPM", {0, 1e5}, sensor.wander_ppm,
         "as --clock-wander, of the sensor's");
  number(app, "--supply-ohm", "OHM", {0, 1e3}, o.feeder.resistance_ohm,
         "resistance between the profile's voltage and the board (default 0)");
  pair(app, "--ripple", "MV,HZ", 1e5, o.feeder.ripple_v, o.feeder.ripple_hz,
       "amplitude and frequency of a ripple of the board's voltage", 1e-3);
}

void add_sensor_errors(CLI::App& app, Imperfections& sensor) {
  number(app, "--noise-uv", "UV", {0, 1e6}, sensor.noise_uv,
         "r.m.s. white noise of a 532 us shunt conversion");
  number(app, "--gain-error", "FRACTION", {-1, 1}, sensor.gain_error,
         "of the shunt path: 0.005 reads 0.5 % too much");
  number(app, "--offset-uv", "UV", {-1e6, 1e6}, sensor.offset_uv,
         "of the shunt path, referred to input");
  number(app, "--bus-gain-error", "FRACTION", {-1, 1}, sensor.bus_gain_error, "of the bus voltage");
  number(app, "--bus-offset-mv", "MV", {-1e5, 1e5}, sensor.bus_offset_v, "of the bus voltage",
         1e-3);
  number(app, "--shunt-ohm", "OHM", {1e-6, 1e3}, sensor.shunt_ohm,
         "resistance of the shunt without current (default 0.1)");
  number(app, "--shunt-ppm", "PPM", {-1e5, 1e5}, sensor.shunt_heat.per_k,
         "the shunt's temperature coefficient per kelvin (default 0)", 1e-6);
  pair(app, "--shunt-thermal", "K_PER_W,TAU_S", 1e4, sensor.shunt_heat.k_per_w,
       sensor.shunt_heat.tau_s,
       "the shunt's thermal resistance and time constant: its own current heats it");
  choice<Quantisation>(app, "--quantisation",
                       {{"round", Quantisation::kRound}, {"truncate", Quantisation::kTruncate}},
                       sensor.quantisation, "how the sensor makes codes (default round)");
  choice<ReadyFlag>(app, "--ready-flag",
                    {{"never-set", ReadyFlag::kNeverSet},
                     {"kept-by-read", ReadyFlag::kKeptByRead},
                     {"never-cleared", ReadyFlag::kNeverCleared}},
                    sensor.ready_flag,
                    "how the INA219's conversion-ready flag differs from the data sheet's");
  choice<ModeChange>(app, "--mode-change",
                     {{"aborts", ModeChange::kAborts}, {"finishes", ModeChange::kFinishes}},
                     sensor.mode_change,
                     "what a new mode does to the INA219's conversion under way (default aborts)");
  number(
      app, "--start-delay-us", "US", {0, 1e4}, sensor.start_delay_s,
      "from the write of a mode to the start of its first conversion, at least, INA219 (default 0)",
      1e-6);
  number(app, "--latch-early-us", "US", {0, 50}, sensor.latch_early_s,
         "how long before the acknowledge of its address the INA219 takes a register's value "
         "(default 0)",
         1e-6);
}

void add_faults(CLI::App& app, Options& o) {
  number(app, "--drop-bytes", "RATE", {0, 1}, o.drop_rate,
         "probability that a byte to the host is lost");
  number(app, "--reset-at", "S", {0, 1e9}, o.reset_at_s,
         "brown-out reset of the microcontroller at this profile time");
  number(app, "--hang-at", "S", {0, 1e9}, o.hang_at_s,
         "the firmware's main loop hangs at this profile time");
  choice(app, "--boot-loader", {{"none", false}, {"old", true}}, o.old_boot_loader,
         "old: one that waits for a second and leaves the watchdog on, as on old Nanos");
  number(app, "--open-sync", "HZ", {1, 1e6}, o.open_sync_hz,
         "the sync line's wire is off: D8 picks up so many edges a second unless it is pulled up");
  number(app, "--reset-garbage", "BYTES", {0, 1e6}, o.reset_garbage,
         "so many random bytes go to the host at the start and at each reset, as from a boot "
         "loader");
  option(app, "--hold-sda", "AT_S|boot,CLOCKS",
         "a device holds SDA low from this profile time (or the start) until it has seen so many "
         "clocks",
         "AT_S,CLOCKS or boot,CLOCKS, the clocks a whole number from 1",
         [&o](const std::string& value) { return take_held_data(o.hold_sda, value); });
  number(app, "--unplug-at", "S", {0, 1e9}, o.unplug_at_s,
         "the serial cable is pulled at this profile time");
  number(app, "--sensor-fail-at", "S", {0, 1e9}, o.sensor_fail_at_s,
         "the first sensor stops answering at this profile time");
  option(app, "--sensor-away", "AT_S,FOR_S",
         "the first sensor does not answer from this profile time on, so long, and converts on; "
         "may be given several times",
         "AT_S,FOR_S, both numbers, the second above 0",
         [&o](const std::string& value) { return take_absence(o.sensor_away, value); });
  number(app, "--patience-s", "S", {0.01, 1e6}, o.patience_s,
         "a host that reads nothing for so long is taken to be gone (default 10)");
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
  if (options.open_sync_hz && (!options.sync.empty() || options.sync_pin != SyncPin::kD8))
    throw RigError(
        "--open-sync goes with D8 alone, without --sync: a line is driven or it is open");
  if (!options.course.empty() && options.live.empty())
    throw RigError("--course goes with --live: a profile's integral is known without it");
  if ((options.pace == Pace::kHost) != (options.grant_fd >= 0))
    throw RigError("--pace host and --grant go together; see rig-sim --help");
  if (options.live.empty()) return;
  if (!options.sync.empty()) throw RigError("--sync does not go with --live: send e lines instead");
  if (options.pace != Pace::kReal)
    throw RigError("--pace 1 alone goes with --live: the input is in real time");
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  CLI::App app(kAbout, "rig-sim");
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  app.allow_extras();
  add_inputs(app, options);
  add_outputs(app, options);
  add_clocks_and_supply(app, options);
  add_sensor_errors(app, options.imperfections);
  add_faults(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    throw RigError(std::string(error.what()) + "; see rig-sim --help");
  }
  if (const auto unknown = app.remaining(); !unknown.empty())
    throw RigError("unknown option " + unknown.front() + "; see rig-sim --help");
  if (options.sensors.empty()) options.sensors.emplace_back();
  check(options);
  return options;
}

}  // namespace opjoule::rig
