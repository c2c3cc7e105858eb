#include "sensors/averaged_channels.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace opjoule::rig {

AveragedChannels::AveragedChannels(const Supply& supply, const Imperfections& imperfections,
                                   std::uint64_t seed)
    : supply_(supply),
      imperfections_(imperfections),
      shunt_path_(imperfections, seed),
      converter_(imperfections.clock, seed,
                 [this](const ConversionStep& step, double start_s, double end_s, bool last) {
                   ended(step, start_s, end_s, last);
                 }) {}

void AveragedChannels::restart(const Plan& plan, double start_s) {
  plan_ = plan;
  rounds_ = 0;
  shunt_sum_ = bus_sum_ = 0;
  shunt_count.restarted();
  bus_count.restarted();
  std::vector<ConversionStep> steps;
  if (plan.shunt_s > 0) steps.push_back({Channel::kShunt, 1, plan.shunt_s});
  if (plan.bus_s > 0) steps.push_back({Channel::kBus, 1, plan.bus_s});
  if (plan.temperature_s > 0) steps.push_back({Channel::kTemperature, 1, plan.temperature_s});
  converter_.restart(steps, true, start_s);
}

void AveragedChannels::ended(const ConversionStep& step, double start_s, double end_s, bool last) {
  if (step.channel == Channel::kShunt) {
    const double volts =
        shunt_path_.converter_v(supply_, start_s, end_s, plan_.shunt.lowest * plan_.shunt.step_v,
                                plan_.shunt.highest * plan_.shunt.step_v);
    const long code = quantised(volts, plan_.shunt.step_v, plan_.shunt.lowest, plan_.shunt.highest,
                                imperfections_.quantisation);
    shunt_sum_ += static_cast<double>(code);
    if (on_shunt) on_shunt(code);
  } else if (step.channel == Channel::kBus) {
    const long code = quantised(
        bus_converter_v(imperfections_, supply_.mean_voltage_v(start_s, end_s)), plan_.bus.step_v,
        plan_.bus.lowest, plan_.bus.highest, imperfections_.quantisation);
    bus_sum_ += static_cast<double>(code);
    if (on_bus) on_bus(code);
  }
  if (last && ++rounds_ == plan_.averages) finish_round();
}

long AveragedChannels::mean(double sum) const {
  return std::lround(whole(sum / plan_.averages, imperfections_.quantisation));
}

void AveragedChannels::finish_round() {
  if (plan_.shunt_s > 0) {
    shunt_code_ = mean(shunt_sum_);
    shunt_count.converted();
  }
  if (plan_.bus_s > 0) {
    bus_code_ = mean(bus_sum_);
    bus_count.converted();
  }
  rounds_ = 0;
  shunt_sum_ = bus_sum_ = 0;
  if (!plan_.continuous) converter_.restart({}, false, 0);
  ready_ = true;
  if (on_results) on_results();
}

bool AveragedChannels::take_ready() {
  if (!ready_) ++polls_not_ready_;
  return std::exchange(ready_, false);
}

nlohmann::ordered_json AveragedChannels::counts() const {
  return {{"shunt", shunt_count.to_json()},
          {"bus", bus_count.to_json()},
          {"polls_not_ready", polls_not_ready_}};
}

double AveragedChannels::next_end_s() const {
  return converter_.idle() ? std::numeric_limits<double>::infinity() : converter_.step_end_s();
}

}  // namespace opjoule::rig
