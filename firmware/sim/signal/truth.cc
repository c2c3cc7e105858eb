#include "signal/truth.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "errors.h"

namespace opjoule::rig {

void Truth::edge(double profile_s) {
  const double energy_j = profile_.until(profile_s).energy_j;
  if (last_edge_s_)
    intervals_.push_back(
        {*last_edge_s_ - offset_s_, profile_s - offset_s_, energy_j - last_edge_j_});
  last_edge_s_ = profile_s;
  last_edge_j_ = energy_j;
}

nlohmann::ordered_json Truth::to_json(double end_s) const {
  const Integrals total = profile_.until(end_s) - origin_;
  auto intervals = nlohmann::ordered_json::array();
  for (const auto& interval : intervals_)
    intervals.push_back({{"start_s", interval.start_s},
                         {"end_s", interval.end_s},
                         {"energy_j", interval.energy_j}});
  return {{"schema", {{"name", "rig-sim-truth"}, {"version", 1}}},
          {"duration_s", end_s - offset_s_},
          {"total_j", total.energy_j},
          {"total_c", total.charge_c},
          {"intervals", std::move(intervals)}};
}

void write_json(const nlohmann::ordered_json& json, const std::string& path) {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial);
    file << json.dump(2) << '\n';
    file.close();
    if (!file) throw RigError("cannot write " + partial + ": check that its directory exists", 1);
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0)
    throw RigError("cannot rename " + partial + " to " + path, 1);
}

}  // namespace opjoule::rig
