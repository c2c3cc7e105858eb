// Latencies in constant memory: a histogram whose buckets grow with the value, 128 to each power of
// two, so that a percentile is within 0.4 % of the true one. (As in HdrHistogram, which Debian has
// only for Java.)
//
// Thread safety: none; each thread fills its own, merged afterwards.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>

namespace opjoule {

class LatencyHistogram {
 public:
  LatencyHistogram() = default;
  LatencyHistogram(LatencyHistogram&&) = default;
  LatencyHistogram& operator=(LatencyHistogram&&) = default;
  LatencyHistogram(const LatencyHistogram& other);
  LatencyHistogram& operator=(const LatencyHistogram& other);
  ~LatencyHistogram() = default;

  void add(int64_t latency_ns) {
    if (counts_ == nullptr) [[unlikely]]
      make_counts();
    const uint64_t value = latency_ns > 0 ? static_cast<uint64_t>(latency_ns) : 0;
    ++(*counts_)[bucket(value)];
    sum_ns_ += value;
    if (value > maximum_ns_) [[unlikely]]
      maximum_ns_ = value;
  }
  void merge(const LatencyHistogram& other);

  [[nodiscard]] uint64_t count() const;
  [[nodiscard]] double mean_ns() const;
  // The middle of the bucket that holds the share `quantile` of all values, the least at 0; 0
  // without values.
  [[nodiscard]] double quantile_ns(double quantile) const;
  [[nodiscard]] uint64_t maximum_ns() const { return maximum_ns_; }

 private:
  static constexpr int kSubBits = 7;
  static constexpr uint64_t kSub = uint64_t{1} << kSubBits;
  static constexpr int kTopBits = 44;  // 2^44 ns = 4.9 h; longer ones fall into the last bucket
  static constexpr size_t kBuckets = (kTopBits - kSubBits + 1) * kSub;

  // Values below 2^7 have a bucket each; above, the top 7 bits below the leading one choose it.
  static size_t bucket(uint64_t value) {
    const int shift = static_cast<int>(std::bit_width(value | kSub)) - kSubBits - 1;
    const size_t index = static_cast<size_t>(shift) * kSub + static_cast<size_t>(value >> shift);
    return std::min(index, kBuckets - 1);
  }
  static double bucket_middle(size_t index);

  using Counts = std::array<uint64_t, kBuckets>;
  [[gnu::cold, gnu::noinline]] void make_counts();

  std::unique_ptr<Counts> counts_;  // made when first needed
  uint64_t sum_ns_ = 0;
  uint64_t maximum_ns_ = 0;
};

}  // namespace opjoule
