// The true energy over time, from which the energy between two moments can be read
// later.
#pragma once

#include <fstream>
#include <optional>
#include <string>

#include "signal/live_feed.h"

namespace opjoule::rig {

/// Writes `board_ns,energy_j`: the exact energy since the input's first row, at some of its rows.
/// Energy interpolated between two of them is within kToleranceJ of the exact one at each row left
/// out, so that the file grows with what changes. The feed must outlive this object.
class Course {
 public:
  static constexpr double kToleranceJ = 2e-5;

  /// Throws RigError when the file cannot be made.
  Course(const std::string& path, LiveFeed& feed);

  /// Writes the rows still held, and a last line at `end_s` in profile time. Throws RigError when
  /// not everything could be written.
  void finish(double end_s);

 private:
  struct Point {
    double time_s, energy_j;
  };
  void take(Point point);
  void line(Point point);
  const std::string path_;
  LiveFeed& feed_;
  std::ofstream file_;
  std::optional<Point> written_, last_;  // last_: the newest, not written yet
  // Slopes from written_ that pass every point since within the tolerance [W].
  double least_w_ = 0, most_w_ = 0;
};

}  // namespace opjoule::rig
