// The command line of rig-sim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sensors/imperfections.h"
#include "signal/oscillator.h"
#include "signal/profile.h"

namespace opjoule::rig {

/// When the profile's time 0 is: at the meter's first sample, so that a recording covers all of it,
/// or when the microcontroller starts.
enum class ProfileStart { kSampling, kBoot };

/// Whose time the rig keeps: none but its own, as fast as it can; this computer's; what the host
/// grants.
enum class Pace { kFree, kReal, kHost };

/// Where the sync line is connected: D8 has input capture, D2 a pin interrupt.
enum class SyncPin { kD8, kD2 };

/// One sensor on the bus.
struct SensorChoice {
  std::string model = "ina219";
  std::uint8_t address = 0x40;
  std::string profile;  ///< current and voltage of its own; empty: those of the board
};

/// A device holds SDA low until it has seen so many clocks.
struct HeldData {
  double at_s = 0;  ///< profile time; negative: from the microcontroller's start
  std::uint64_t clocks = 0;
};

/// The first sensor does not answer for a while.
struct Absence {
  double at_s, for_s;  ///< from this profile time, so long
};

struct Options {
  std::string elf, profile, sync, pty, truth, course, live, bus_log, conversions;
  Pace pace = Pace::kReal;
  int grant_fd = -1;  ///< with kHost: where the host grants time
  ProfileStart start = ProfileStart::kSampling;
  SyncPin sync_pin = SyncPin::kD8;
  double delay_s = 0;
  OscillatorErrors clock;  ///< of the microcontroller
  Feeder feeder;
  Imperfections imperfections;
  double drop_rate = 0;
  std::uint64_t seed = 1;
  double tail_s = 0.5;
  double patience_s = 10;
  std::optional<double> reset_at_s, unplug_at_s, sensor_fail_at_s;
  std::vector<Absence> sensor_away;
  std::optional<HeldData> hold_sda;
  std::optional<double> hang_at_s, open_sync_hz;
  bool old_boot_loader = false;
  std::size_t reset_garbage = 0;      ///< bytes that the boot loader sends at each start
  std::vector<SensorChoice> sensors;  ///< never empty after parse_options
  std::string help;  ///< what --help prints, if it was given; then nothing else is checked
};

/// Throws RigError on an unknown option, a missing or unfit value, or options that do not go
/// together.
Options parse_options(int argc, const char* const* argv);

}  // namespace opjoule::rig
