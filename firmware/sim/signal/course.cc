#include "signal/course.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "errors.h"

namespace opjoule::rig {

Course::Course(const std::string& path, LiveFeed& feed) : path_(path), feed_(feed), file_(path) {
  file_.precision(std::numeric_limits<double>::max_digits10);
  file_ << "board_ns,energy_j\n";
  if (!file_) throw RigError("cannot write --course " + path + ": check that its directory exists");
  feed_.profile().on_forget = [this](double time_s, const Integrals& until) {
    take({time_s, until.energy_j});
  };
}

// A swing filter: Elmeleegy et al., Online piece-wise linear approximation of numerical streams
// with precision guarantees, PVLDB 2 (2009).
void Course::take(Point point) {
  if (!written_) {
    line(point);
    return;
  }
  const auto slope_w = [&](double beside_j) {
    return (point.energy_j + beside_j - written_->energy_j) / (point.time_s - written_->time_s);
  };
  if (point.time_s <= (last_ ? *last_ : *written_).time_s) return;
  if (last_ && (slope_w(0) < least_w_ || slope_w(0) > most_w_)) line(*last_);
  least_w_ = last_ ? std::max(least_w_, slope_w(-kToleranceJ)) : slope_w(-kToleranceJ);
  most_w_ = last_ ? std::min(most_w_, slope_w(kToleranceJ)) : slope_w(kToleranceJ);
  last_ = point;
}

void Course::line(Point point) {
  file_ << feed_.epoch_ns() + std::llround(point.time_s * 1e9) << ',' << point.energy_j << '\n';
  written_ = point;
  last_.reset();
}

void Course::finish(double end_s) {
  feed_.profile().forget_before(end_s);
  const double newest_s = std::min(feed_.profile().first_s(), end_s);
  take({newest_s, feed_.profile().until(newest_s).energy_j});
  if (last_) line(*last_);
  line({end_s, feed_.profile().until(end_s).energy_j});
  file_.close();
  if (!file_) throw RigError("cannot write " + path_ + ": is the disk full?", 1);
}

}  // namespace opjoule::rig
