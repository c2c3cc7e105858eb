#include "sensors/shunt_temperature.h"

#include <algorithm>
#include <cmath>

namespace opjoule::rig {
namespace {

constexpr double kStepsPerTau = 50;
constexpr int kStartRounds = 4;  ///< the resistance at the start depends on the heat, and back

}  // namespace

double ShuntTemperature::resistance_factor(const Supply& supply, double from_s, double to_s) {
  if (heat_.per_k == 0 || heat_.k_per_w == 0) return 1;
  if (!begun_ && supply.started() && supply.profile_s(from_s) >= 0) {
    begun_ = true;
    at_s_ = from_s;
    for (int i = 0; i < kStartRounds; ++i) rise_k_ = end_k(supply.mean_square_a2(from_s, to_s));
  }
  if (begun_) advance(supply, (from_s + to_s) / 2);
  return factor();
}

void ShuntTemperature::advance(const Supply& supply, double to_s) {
  while (at_s_ < to_s) {
    const double next_s = std::min(to_s, at_s_ + heat_.tau_s / kStepsPerTau);
    const double share = -std::expm1(-(next_s - at_s_) / heat_.tau_s);
    rise_k_ += share * (end_k(supply.mean_square_a2(at_s_, next_s)) - rise_k_);
    at_s_ = next_s;
  }
}

}  // namespace opjoule::rig
