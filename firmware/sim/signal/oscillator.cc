#include "signal/oscillator.h"

#include <cmath>
#include <numbers>
#include <random>

namespace opjoule::rig {
namespace {

constexpr double kPpm = 1e-6;
constexpr double kShortestPeriod_s = 600, kLongestPeriod_s = 3600;
constexpr int kNewtonSteps = 3;         // drifts of 1e-3: each gains at least six decimal places
constexpr double kSmallStep_s = 1e-10;  // what is left after such a step is below 1e-13 s

}  // namespace

Oscillator::Oscillator(double nominal_hz, const OscillatorErrors& errors, std::uint64_t seed)
    : nominal_hz_(nominal_hz),
      steady_rate_(1 + errors.error_ppm * kPpm),
      warmup_(errors.warmup_ppm * kPpm),
      tau_s_(errors.warmup_tau_s),
      drifts_(errors.warmup_ppm != 0 || errors.wander_ppm != 0),
      known_hz_(nominal_hz * steady_rate_) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  for (auto& sine : wander_) {
    const double period_s =
        kShortestPeriod_s * std::pow(kLongestPeriod_s / kShortestPeriod_s, part(random));
    sine = {errors.wander_ppm * kPpm / static_cast<double>(wander_.size()),
            2 * std::numbers::pi / period_s, 2 * std::numbers::pi * part(random)};
  }
}

double Oscillator::count_at(double time_s) const {
  if (!drifts_) return time_s * nominal_hz_ * steady_rate_;
  double drifted_s = warmup_ * (time_s + tau_s_ * std::expm1(-time_s / tau_s_));
  for (const auto& [amplitude, omega, phase] : wander_)
    drifted_s += amplitude / omega * (std::cos(phase) - std::cos(omega * time_s + phase));
  return nominal_hz_ * (time_s * steady_rate_ + drifted_s);
}

double Oscillator::hz_at(double time_s) const {
  double rate = steady_rate_ - warmup_ * std::expm1(-time_s / tau_s_);
  for (const auto& [amplitude, omega, phase] : wander_)
    rate += amplitude * std::sin(omega * time_s + phase);
  return nominal_hz_ * rate;
}

double Oscillator::time_s(double count) const {
  if (!drifts_) return count / (nominal_hz_ * steady_rate_);
  double found_s = known_s_ + (count - known_count_) / known_hz_;
  for (int i = 0; i < kNewtonSteps; ++i) {
    known_hz_ = hz_at(found_s);
    const double step_s = (count_at(found_s) - count) / known_hz_;
    found_s -= step_s;
    if (std::abs(step_s) < kSmallStep_s) break;
  }
  known_count_ = count;
  known_s_ = found_s;
  return found_s;
}

}  // namespace opjoule::rig
