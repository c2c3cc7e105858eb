#include "sensors/converter.h"

namespace opjoule::rig {

void Converter::restart(std::vector<ConversionStep> steps, bool continuous, double start_s) {
  steps_ = std::move(steps);
  continuous_ = continuous;
  index_ = 0;
  begin_step(start_s);
}

void Converter::begin_step(double start_s) {
  start_s_ = end_s_ = start_s;
  if (idle()) return;
  const auto& step = steps_[index_];
  end_s_ = clock_.time_s(clock_.count_at(start_s) + step.averages * step.conversion_s);
}

void Converter::advance(double now_s) {
  while (!idle() && step_end_s() <= now_s) {
    const ConversionStep step = steps_[index_];
    const double start_s = start_s_, end_s = step_end_s();
    const bool last = index_ + 1 == steps_.size();
    index_ = last ? 0 : index_ + 1;
    if (last && !continuous_) steps_.clear();
    begin_step(end_s);
    on_end_(step, start_s, end_s, last);
  }
}

}  // namespace opjoule::rig
