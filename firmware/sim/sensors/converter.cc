#include "sensors/converter.h"

namespace opjoule::rig {

void Converter::restart(std::vector<ConversionStep> steps, bool continuous, double start_s) {
  steps_ = std::move(steps);
  continuous_ = continuous;
  index_ = 0;
  start_s_ = start_s;
}

void Converter::advance(double now_s) {
  while (!idle() && step_end_s() <= now_s) {
    const ConversionStep step = steps_[index_];
    const double start_s = start_s_, end_s = step_end_s();
    const bool last = index_ + 1 == steps_.size();
    start_s_ = end_s;
    index_ = last ? 0 : index_ + 1;
    if (last && !continuous_) steps_.clear();
    on_end_(step, start_s, end_s, last);
  }
}

}  // namespace opjoule::rig
