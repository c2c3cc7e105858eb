#include "sensors/imperfections.h"

#include <algorithm>
#include <cmath>

namespace opjoule::rig {

double ShuntPath::converter_v(const Supply& supply, double from_s, double to_s, double lowest_v,
                              double highest_v) {
  const double volts_per_ampere = imperfections_.shunt_ohm *
                                  temperature_.resistance_factor(supply, from_s, to_s) *
                                  (1 + imperfections_.gain_error);
  const double offset_v = imperfections_.offset_uv * 1e-6;
  const double mean_current_a =
      supply.limited_current_a(from_s, to_s, (lowest_v - offset_v) / volts_per_ampere,
                               (highest_v - offset_v) / volts_per_ampere);
  constexpr double kNoiseReference_s = 532e-6;
  double volts = mean_current_a * volts_per_ampere + offset_v;
  if (imperfections_.noise_uv > 0)
    volts += normal_(random_) * imperfections_.noise_uv * 1e-6 *
             std::sqrt(kNoiseReference_s / (to_s - from_s));
  return volts;
}

double whole(double value, Quantisation how) {
  return how == Quantisation::kRound ? std::round(value) : std::trunc(value);
}

long quantised(double value_v, double step_v, long lowest, long highest, Quantisation how) {
  return std::lround(std::clamp(whole(value_v / step_v, how), static_cast<double>(lowest),
                                static_cast<double>(highest)));
}

}  // namespace opjoule::rig
