#include "signal/sync_edges.h"

#include "errors.h"
#include "signal/csv.h"

namespace opjoule::rig {

std::vector<SyncEdge> read_sync_edges(const std::string& path) {
  std::vector<SyncEdge> edges;
  double last_s = 0;
  bool level = false;
  for (const auto& row : read_csv(path, {"time_s", "level"})) {
    if (row[0] < last_s)
      throw RigError(path + ": time_s " + std::to_string(row[0]) +
                     " is out of order; times start at 0 or later and increase");
    if (row[1] != 0 && row[1] != 1)
      throw RigError(path + ": level " + std::to_string(row[1]) + " is neither 0 nor 1");
    last_s = row[0];
    if ((row[1] == 1) == level) continue;
    level = !level;
    edges.push_back({row[0], level});
  }
  return edges;
}

}  // namespace opjoule::rig
