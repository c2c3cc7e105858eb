// What a sensor measures: the profile on the time axis of the simulated rig.
#pragma once

#include <optional>

#include "signal/profile.h"

namespace opjoule::rig {

/// Mean current and voltage at the board's supply over a stretch of rig time. Rig time is true time
/// in seconds since the microcontroller started. The profile must outlive this object.
class Supply {
 public:
  explicit Supply(const Profile& profile) : profile_(profile) {}

  /// Places the profile's time 0 at this rig time (which may be negative). Until then no current
  /// flows.
  void start_at(double rig_s) { start_s_ = rig_s; }
  bool started() const { return start_s_.has_value(); }

  /// Profile time of a rig time [s]; before the start, a time before the whole profile.
  double profile_s(double rig_s) const { return start_s_ ? rig_s - *start_s_ : -1.0; }
  double start_s() const { return start_s_.value_or(0); }

  /// Exact mean of the current [A] over [from_s, to_s] in rig time, from_s < to_s.
  double mean_current_a(double from_s, double to_s) const {
    return start_s_ ? between(from_s, to_s).charge_c / (to_s - from_s) : 0;
  }

  /// The same with what is beyond [least_a, most_a] cut off at every moment.
  double limited_current_a(double from_s, double to_s, double least_a, double most_a) const {
    if (!start_s_) return 0;
    return profile_.limited_charge_c(from_s - *start_s_, to_s - *start_s_, least_a, most_a) /
           (to_s - from_s);
  }

  /// Exact mean of the current's square [A^2] over [from_s, to_s] in rig time: what heats a
  /// resistance.
  double mean_square_a2(double from_s, double to_s) const {
    return start_s_ ? between(from_s, to_s).square_a2s / (to_s - from_s) : 0;
  }

  /// Exact mean of the bus voltage [V] over [from_s, to_s] in rig time.
  double mean_voltage_v(double from_s, double to_s) const {
    if (!start_s_) return profile_.until(0).volt_seconds - profile_.until(-1).volt_seconds;
    return between(from_s, to_s).volt_seconds / (to_s - from_s);
  }

 private:
  Integrals between(double from_s, double to_s) const {
    return profile_.until(to_s - *start_s_) - profile_.until(from_s - *start_s_);
  }
  const Profile& profile_;
  std::optional<double> start_s_;
};

}  // namespace opjoule::rig
