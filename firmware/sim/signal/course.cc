#include "signal/course.h"

#include <cmath>
#include <limits>

#include "errors.h"

namespace opjoule::rig {

Course::Course(const std::string& path, LiveFeed& feed) : path_(path), feed_(feed), file_(path) {
  file_.precision(std::numeric_limits<double>::max_digits10);
  file_ << "board_ns,energy_j\n";
  if (!file_) throw RigError("cannot write --course " + path + ": check that its directory exists");
  feed_.profile().on_forget = [this](double time_s, const Integrals& until) {
    line(time_s, until.energy_j);
  };
}

void Course::line(double time_s, double energy_j) {
  file_ << feed_.epoch_ns() + std::llround(time_s * 1e9) << ',' << energy_j << '\n';
}

void Course::finish(double end_s) {
  feed_.profile().forget_before(end_s);
  line(end_s, feed_.profile().until(end_s).energy_j);
  file_.close();
  if (!file_) throw RigError("cannot write " + path_ + ": is the disk full?", 1);
}

}  // namespace opjoule::rig
