#include <algorithm>
#include <cmath>
#include <numeric>

#include "loader/wide_product.h"
#include "workload/generator.h"

namespace opjoule {
namespace {

// Draws for one request at most, where YCSB has no limit: keys that are there may be hardly ever
// drawn. With at least one in 1,000 the limit changes 5 of 100,000 requests.
constexpr int kMostDraws = 10'000;

// A step near the golden section of n with no common divisor: rank * step mod n visits every key
// once and spreads the hot ones evenly.
uint64_t coprime_step(uint64_t n) {
  uint64_t step = static_cast<uint64_t>(static_cast<double>(n) * 0.6180339887498949) | 1;
  while (std::gcd(step, n) != 1) ++step;
  return step;
}

}  // namespace

KeyChooser::KeyChooser(KeySpace& space, Random& random)
    : space_(space),
      random_(random),
      distribution_(space.settings.distribution),
      start_(space.settings.insert_start),
      count_(space.settings.insert_count) {
  const WorkloadSettings& settings = space.settings;
  const double insert_share = settings.proportion[static_cast<int>(OperationKind::kInsert)];
  const double new_keys = static_cast<double>(settings.insert_room_operations) * insert_share *
                          2;  // 2 is YCSB's margin
  modulus_ = count_ + static_cast<uint64_t>(std::min(new_keys, 0x1p62));
  if (distribution_ == RequestDistribution::kZipfian) ++modulus_;  // YCSB's maximum is inclusive
  if (distribution_ == RequestDistribution::kTrueZipfian) {
    true_zipfian_.emplace(modulus_, settings.zipfian_theta);
    scatter_ = coprime_step(modulus_);
  }
  if (distribution_ == RequestDistribution::kLatest) latest_.emplace(settings.row_count - 1);
  hot_ = static_cast<uint64_t>(static_cast<double>(count_) * settings.hotspot_data_fraction);
  exponential_mean_ = static_cast<double>(settings.row_count) * settings.exponential_fraction /
                      -std::log(1 - settings.exponential_percentile / 100);
}

uint64_t KeyChooser::draw_hotspot() {
  if (random_.unit() < space_.settings.hotspot_operation_fraction)
    return start_ + random_.below(hot_);
  return start_ + hot_ + random_.below(count_ - hot_);
}

uint64_t KeyChooser::draw_latest(uint64_t last) {
  latest_->grow(last);
  while (true) {
    const uint64_t back = latest_->draw(random_);
    if (back <= last) return last - back;  // else YCSB asks for a key below 0
  }
}

uint64_t KeyChooser::draw_exponential(uint64_t last) {
  const double end = static_cast<double>(last) + 1;
  for (int draws = 0; draws < kMostDraws; ++draws) {
    const double back = -std::log(random_.unit()) * exponential_mean_;
    if (back < end) return last - static_cast<uint64_t>(back);
  }
  // The same distribution by inversion.
  const double back =
      -std::log1p(random_.unit() * std::expm1(-end / exponential_mean_)) * exponential_mean_;
  return last - std::min(last, static_cast<uint64_t>(std::max(back, 0.0)));
}

uint64_t KeyChooser::draw(uint64_t last) {
  uint64_t number = 0;
  for (int draws = 0; draws < kMostDraws; ++draws) {
    switch (distribution_) {
      case RequestDistribution::kUniform:
        number = start_ + random_.below(count_);
        break;
      case RequestDistribution::kZipfian:
        number = start_ + key_hash(scrambled_.draw(random_)) % modulus_;
        break;
      case RequestDistribution::kTrueZipfian:
        number = start_ + multiply_modulo(true_zipfian_->draw(random_), scatter_, modulus_);
        break;
      case RequestDistribution::kLatest:
        return draw_latest(last);
      case RequestDistribution::kHotspot:
        number = draw_hotspot();
        break;
      case RequestDistribution::kExponential:
        return draw_exponential(last);
      case RequestDistribution::kSequential:
        number = start_ + space_.sequential.fetch_add(1, std::memory_order_relaxed) % count_;
        break;
    }
    if (number <= last) return number;  // else it is not inserted yet: YCSB draws again
  }
  return start_ + (number - start_) % (last + 1 - start_);
}

}  // namespace opjoule
