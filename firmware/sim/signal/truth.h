// The truth by which a measurement is judged: exact energy over the profile and between sync edges.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "signal/profile.h"

namespace opjoule::rig {

/// Collects the energies for truth.json. Times are seconds of the profile (in live mode: since
/// start-up of the simulated microcontroller); joules are exact integrals of voltage times current.
class Truth {
 public:
  /// `offset_s`: profile time at which the reported time axis starts.
  explicit Truth(const Profile& profile, double offset_s = 0)
      : profile_(profile), offset_s_(offset_s), origin_(profile.until(offset_s)) {}

  /// An edge of the sync line at this profile time; edges come in order of time.
  void edge(double profile_s);

  /// The energies as a JSON object, integrated up to `end_s` in profile time.
  nlohmann::ordered_json to_json(double end_s) const;

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
};

/// Writes `json` to `path` through a temporary name, so that a reader never sees half. Throws
/// RigError when it cannot.
void write_json(const nlohmann::ordered_json& json, const std::string& path);

}  // namespace opjoule::rig
