// The sync line: when it changes, and to which level.
#pragma once

#include <string>
#include <vector>

namespace opjoule::rig {

struct SyncEdge {
  double time_s;
  bool level;
};

/// Reads `time_s,level`. The line starts low; a row that does not change the level is no edge.
/// Throws RigError: unreadable, a level other than 0 and 1, times that decrease or are negative.
std::vector<SyncEdge> read_sync_edges(const std::string& path);

}  // namespace opjoule::rig
