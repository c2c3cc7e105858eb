#include "workload/zipfian.h"

#include <algorithm>
#include <cmath>

namespace opjoule {
namespace {

// x^100. YCSB's alpha is 1 / (1 - 0.99) = 100 - 9e-14; the difference changes a result by at most
// 3e-14 of its value, as much as the rounding of x does. pow() would take twice as long.
double power_100(double x) {
  const double x4 = (x * x) * (x * x);
  const double x16 = (x4 * x4) * (x4 * x4);
  const double x32 = x16 * x16;
  return (x32 * x32) * (x32 * x4);
}

constexpr uint64_t kDirectTerms = 1000;

// (exp(x) - 1) / x and log(1 + x) / x, continued through 0.
double expm1_ratio(double x) { return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x / 2; }
double log1p_ratio(double x) { return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x / 2; }

}  // namespace

double zeta(uint64_t n, double theta) {
  double sum = 0;
  const uint64_t direct = std::min(n, kDirectTerms);
  for (uint64_t i = direct; i >= 1; --i) sum += std::pow(static_cast<double>(i), -theta);
  if (n == direct) return sum;
  const double a = static_cast<double>(direct);
  const double b = static_cast<double>(n);
  const double fa = std::pow(a, -theta);
  const double fb = std::pow(b, -theta);
  const double integral = theta == 1 ? std::log(b / a) : (b * fb - a * fa) / (1 - theta);
  const double ends = (fb - fa) / 2;
  const double first_derivative = -theta * (fb / b - fa / a) / 12;
  const double third_derivative =
      theta * (theta + 1) * (theta + 2) * (fb / (b * b * b) - fa / (a * a * a)) / 720;
  return sum + integral + ends + first_derivative + third_derivative;
}

YcsbZipfian::YcsbZipfian(uint64_t items, double zeta_items)
    : first_items_(items), items_(items), second_(1 + std::pow(0.5, kTheta)), zeta_(zeta_items) {
  set_eta();
}

void YcsbZipfian::set_eta() {
  eta_ =
      (1 - std::pow(2.0 / static_cast<double>(first_items_), 1 - kTheta)) / (1 - second_ / zeta_);
}

void YcsbZipfian::grow(uint64_t items) {
  if (items <= items_) return;
  for (uint64_t i = items_ + 1; i <= items; ++i) zeta_ += std::pow(static_cast<double>(i), -kTheta);
  items_ = items;
  set_eta();
}

uint64_t YcsbZipfian::draw(double u) const {
  const double scaled = u * zeta_;
  if (scaled < 1) return 0;
  if (scaled < second_) return 1;
  const double item = static_cast<double>(items_) * power_100(eta_ * u - eta_ + 1);
  return item >= 0 ? static_cast<uint64_t>(std::min(item, 0x1p63)) : 0;  // Java's cast: NaN is 0
}

TrueZipfian::TrueZipfian(uint64_t n, double theta) : n_(static_cast<double>(n)), theta_(theta) {
  integral_first_ = integral(1.5) - 1;
  integral_last_ = integral(n_ + 0.5);
  shortcut_ = 2 - integral_inverse(integral(2.5) - density(2));
}

double TrueZipfian::integral(double x) const {
  const double log_x = std::log(x);
  return expm1_ratio((1 - theta_) * log_x) * log_x;
}

double TrueZipfian::integral_inverse(double x) const {
  const double t = std::max(x * (1 - theta_), -1.0);
  return std::exp(log1p_ratio(t) * x);
}

double TrueZipfian::density(double x) const { return std::exp(-theta_ * std::log(x)); }

uint64_t TrueZipfian::draw(Random& random) const {
  while (true) {
    const double u = integral_last_ + random.unit() * (integral_first_ - integral_last_);
    const double x = integral_inverse(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (k - x <= shortcut_ || u >= integral(k + 0.5) - density(k)) return static_cast<uint64_t>(k);
  }
}

}  // namespace opjoule
