// Latencies in constant memory: a histogram whose buckets grow with the value, 128 to each power of
// two, so that a percentile is within 0.4 % of the true one. (As in HdrHistogram, which Debian has
// only for Java.)
//
// Thread safety: none; each thread fills its own, merged afterwards.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace opjoule {

class LatencyHistogram {
 public:
  // Copied, never moved: a histogram that was moved from would take no more values.
  LatencyHistogram() = default;
  LatencyHistogram(const LatencyHistogram&) = default;
  LatencyHistogram& operator=(const LatencyHistogram&) = default;
  ~LatencyHistogram() = default;

  void add(int64_t latency_ns) {
    auto value = static_cast<uint64_t>(latency_ns);  // a negative one is above any limit
    if (value >= usual_ns_) [[unlikely]]
      value = unusual(latency_ns);
    ++counts_[bucket(value)];
    sum_ns_ += value;
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
  static constexpr int kTopBits = 44;  // 2^44 ns = 4.9 h; longer ones count as that
  static constexpr uint64_t kLongestNs = (uint64_t{1} << kTopBits) - 1;
  static constexpr size_t kBuckets = (kTopBits - kSubBits + 1) * kSub;

  // Values below 2^7 have a bucket each; above, the top 7 bits below the leading one choose it.
  static size_t bucket(uint64_t value) {
    const auto shift = static_cast<unsigned>(std::bit_width(value | kSub)) - kSubBits - 1;
    return static_cast<size_t>(shift) * kSub + static_cast<size_t>(value >> shift);
  }
  static double bucket_middle(size_t index);

  // Prepares for a value that is the first, the longest so far, negative, or too long. Gives the
  // one to count.
  [[gnu::cold, gnu::noinline]] uint64_t unusual(int64_t latency_ns);
  void make_room(uint64_t maximum_ns);

  std::vector<uint64_t> counts_;  // by bucket; empty before the first value
  uint64_t sum_ns_ = 0;
  uint64_t maximum_ns_ = 0;
  uint64_t usual_ns_ = 0;  // smaller values need no preparation
};

}  // namespace opjoule
