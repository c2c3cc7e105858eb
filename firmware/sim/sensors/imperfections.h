// How a real sensor departs from an ideal one.
#pragma once

#include <cstdint>
#include <random>

#include "sensors/shunt_temperature.h"
#include "signal/oscillator.h"
#include "signal/supply.h"

namespace opjoule::rig {

/// How a code is made from a value between two codes. The data sheet does not say which of them the
/// INA219 does; the difference is half a step.
enum class Quantisation { kRound, kTruncate };

/// How the INA219's conversion-ready flag behaves: as in the data sheet, or as it may in a clone.
enum class ReadyFlag {
  kAsStated,
  kNeverSet,
  kKeptByRead,    ///< reading the power register does not clear it, writing a mode does
  kNeverCleared,  ///< nothing does
};

/// What a write to the INA219's configuration does to the conversion under way. The data sheet does
/// not say.
enum class ModeChange {
  kAborts,    ///< it is given up
  kFinishes,  ///< it ends as usual, sets the flag, and the new mode begins after it
};

struct Imperfections {
  double shunt_ohm = 0.1;  ///< resistance of the shunt without current
  ShuntHeat shunt_heat;
  double noise_uv = 0;        ///< r.m.s. of white noise on a shunt conversion of 532 us [uV]
  double gain_error = 0;      ///< of the shunt path, 0.005 reads 0.5 % too much
  double offset_uv = 0;       ///< of the shunt path, referred to input [uV]
  double bus_gain_error = 0;  ///< of the bus path, 0.005 reads 0.5 % too much
  double bus_offset_v = 0;    ///< of the bus path [V]
  OscillatorErrors clock;     ///< of the chip's own oscillator; fast converts faster
  Quantisation quantisation = Quantisation::kRound;
  ReadyFlag ready_flag = ReadyFlag::kAsStated;
  ModeChange mode_change = ModeChange::kAborts;
  double start_delay_s =
      0;  ///< from the write of a mode to its first conversion, at least (INA219) [s]
  double latch_early_s = 0;  ///< how long before the acknowledge of its address the INA219 takes a
                             ///< register's value [s]
};

/// The voltage at the converter for a mean bus voltage [V].
inline double bus_converter_v(const Imperfections& imperfections, double mean_voltage_v) {
  return mean_voltage_v * (1 + imperfections.bus_gain_error) + imperfections.bus_offset_v;
}

/// The shunt path before the converter: from the true mean current to the voltage at the converter.
class ShuntPath {
 public:
  ShuntPath(const Imperfections& imperfections, std::uint64_t seed)
      : imperfections_(imperfections),
        temperature_(imperfections.shunt_heat, imperfections.shunt_ohm),
        random_(seed) {}

  /// Voltage that the converter sees [V] in one conversion from `from_s` to `to_s`. It cannot
  /// follow beyond [lowest_v, highest_v] at any moment, however short: the feedback of a
  /// delta-sigma modulator balances full scale at most (Analog Devices MT-022; ranges: TI SBOA511A,
  /// table 3-2), so that the mean of a burst beyond the range is too small although it lies inside.
  /// White noise decreases with the square root of the time.
  double converter_v(const Supply& supply, double from_s, double to_s, double lowest_v,
                     double highest_v);

 private:
  const Imperfections imperfections_;
  ShuntTemperature temperature_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

/// The whole number to which a value is converted.
double whole(double value, Quantisation how);

/// `value_v` in steps of `step_v`, as a whole number of steps, limited to [lowest, highest] steps.
long quantised(double value_v, double step_v, long lowest, long highest, Quantisation how);

}  // namespace opjoule::rig
