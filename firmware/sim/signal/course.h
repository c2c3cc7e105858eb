// The true energy over time, row by row, from which the energy between two moments can be read
// later.
#pragma once

#include <fstream>
#include <string>

#include "signal/live_feed.h"

namespace opjoule::rig {

/// Writes `board_ns,energy_j`: the exact energy since the input's first row, at each of its rows.
/// Between two rows the current is constant. The feed must outlive this object.
class Course {
 public:
  /// Throws RigError when the file cannot be made.
  Course(const std::string& path, LiveFeed& feed);

  /// Writes the rows still held, and a last line at `end_s` in profile time. Throws RigError when
  /// not everything could be written.
  void finish(double end_s);

 private:
  void line(double time_s, double energy_j);
  const std::string path_;
  LiveFeed& feed_;
  std::ofstream file_;
};

}  // namespace opjoule::rig
