// The key numbers of a run's inserts: handed out once each, and visible to reads once acknowledged.
//
// Wait-free and of constant memory: each thread publishes a lower bound of the key number that it
// is inserting; every number below all bounds and below the next one is acknowledged. YCSB's
// AcknowledgedCounterGenerator does the same with a window of 2^20 flags behind a lock, and fails
// when it overflows. Thread safety: any thread, each with its own thread number.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace opjoule {

class InsertCounter {
 public:
  // `first`: the first number handed out; everything below counts as acknowledged.
  InsertCounter(uint64_t first, uint32_t threads)
      : next_(first), threads_(threads), in_flight_(new Slot[threads]) {}

  // The next key number for this thread, which has none in flight.
  uint64_t take(uint32_t thread) {
    // The bound is published before the number is taken, so that no reader can miss both.
    in_flight_[thread].bound.store(next_.load());
    return next_.fetch_add(1);
  }
  // This thread's number is in the database, or has failed for good.
  void acknowledge(uint32_t thread) { in_flight_[thread].bound.store(kNone); }

  // Every number below this one is acknowledged.
  [[nodiscard]] uint64_t acknowledged_end() const {
    uint64_t end = next_.load();
    for (uint32_t i = 0; i < threads_; ++i) {
      const uint64_t bound = in_flight_[i].bound.load();
      if (bound < end) end = bound;
    }
    return end;
  }

 private:
  static constexpr uint64_t kNone = UINT64_MAX;
  struct alignas(64) Slot {
    std::atomic<uint64_t> bound{kNone};
  };

  alignas(64) std::atomic<uint64_t> next_;
  uint32_t threads_;
  std::unique_ptr<Slot[]> in_flight_;
};

}  // namespace opjoule
