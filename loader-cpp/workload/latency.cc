#include "workload/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace opjoule {

uint64_t LatencyHistogram::unusual(int64_t latency_ns) {
  const uint64_t value = latency_ns > 0 ? static_cast<uint64_t>(latency_ns) : 0;
  make_room(value);
  const uint64_t counted = std::min(value, kLongestNs);
  sum_ns_ += value - counted;  // the mean stays exact
  return counted;
}

void LatencyHistogram::make_room(uint64_t maximum_ns) {
  counts_.resize(kBuckets);
  maximum_ns_ = std::max(maximum_ns_, maximum_ns);
  usual_ns_ = std::min(maximum_ns_, kLongestNs);
}

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.counts_.empty()) return;
  make_room(other.maximum_ns_);
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  sum_ns_ += other.sum_ns_;
}

uint64_t LatencyHistogram::count() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

double LatencyHistogram::mean_ns() const {
  const uint64_t values = count();
  return values == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(values);
}

double LatencyHistogram::bucket_middle(size_t index) {
  if (index < 2 * kSub) return static_cast<double>(index);
  const int shift = static_cast<int>(index / kSub) - 1;
  const uint64_t low = (index - static_cast<size_t>(shift) * kSub) << shift;
  return static_cast<double>(low) + std::ldexp(1.0, shift) / 2;
}

double LatencyHistogram::quantile_ns(double quantile) const {
  const double rank = quantile * static_cast<double>(count());
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] > 0 && static_cast<double>(seen) >= rank)
      return std::min(bucket_middle(i), static_cast<double>(maximum_ns_));
  }
  return 0;
}

}  // namespace opjoule
