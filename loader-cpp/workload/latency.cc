#include "workload/latency.h"

#include <cmath>

namespace opjoule {

LatencyHistogram::LatencyHistogram(const LatencyHistogram& other)
    : counts_(other.counts_ == nullptr ? nullptr : std::make_unique<Counts>(*other.counts_)),
      sum_ns_(other.sum_ns_),
      maximum_ns_(other.maximum_ns_) {}

LatencyHistogram& LatencyHistogram::operator=(const LatencyHistogram& other) {
  return *this = LatencyHistogram(other);
}

void LatencyHistogram::make_counts() { counts_ = std::make_unique<Counts>(); }

void LatencyHistogram::merge(const LatencyHistogram& other) {
  if (other.counts_ == nullptr) return;
  if (counts_ == nullptr) make_counts();
  for (size_t i = 0; i < kBuckets; ++i) (*counts_)[i] += (*other.counts_)[i];
  sum_ns_ += other.sum_ns_;
  maximum_ns_ = std::max(maximum_ns_, other.maximum_ns_);
}

uint64_t LatencyHistogram::count() const {
  uint64_t count = 0;
  if (counts_ != nullptr)
    for (const uint64_t in_bucket : *counts_) count += in_bucket;
  return count;
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
  for (size_t i = 0; counts_ != nullptr && i < kBuckets; ++i) {
    seen += (*counts_)[i];
    if ((*counts_)[i] > 0 && static_cast<double>(seen) >= rank)
      return std::min(bucket_middle(i), static_cast<double>(maximum_ns_));
  }
  return 0;
}

}  // namespace opjoule
