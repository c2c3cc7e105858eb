// The answer a measurement is judged by: exact energy over the profile and between sync edges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "signal/profile.h"

namespace opjoule::rig {

/// Collects what truth.json tells. Times are seconds of the profile (in live mode: since start-up
/// of the simulated microcontroller); joules are exact integrals of voltage times current.
class Truth {
 public:
  /// `offset_s`: profile time at which the reported time axis starts.
  explicit Truth(const Profile& profile, double offset_s = 0)
      : profile_(profile), offset_s_(offset_s), origin_(profile.until(offset_s)) {}

  /// An edge of the sync line at this profile time; edges come in order of time.
  void edge(double profile_s);

  /// Adds `"name": json` beside the energy, for example counts of a sensor.
  void extra(const std::string& name, const std::string& json) { extras_.push_back({name, json}); }

  /// The whole as a JSON object, integrated up to `end_s` in profile time.
  std::string to_json(double end_s) const;

  /// Writes to_json(end_s) to `path` through a temporary name, so that a reader never sees half.
  /// Throws RigError when it cannot.
  void write(const std::string& path, double end_s) const;

 private:
  struct Interval {
    double start_s, end_s, energy_j;
  };
  const Profile& profile_;
  double offset_s_;
  Integrals origin_;
  std::optional<double> last_edge_s_;
  double last_edge_j_ = 0;
  std::vector<Interval> intervals_;
  std::vector<std::pair<std::string, std::string>> extras_;
};

/// `value` as JSON, with all digits a double holds; null if it is not finite.
std::string json_number(double value);

/// Objects that are JSON already as an array.
std::string json_array(const std::vector<std::string>& items);

/// `text` as a JSON string.
std::string json_string(const std::string& text);

}  // namespace opjoule::rig
