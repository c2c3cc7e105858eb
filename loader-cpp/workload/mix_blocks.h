// Randomised blocks: the mix of a run's operations changes at random every so many seconds, and is
// over the run what the workload says. That tells apart what each kind of operation draws, where a
// power meter sees too little of single operations.
//
// A block's shares of time are drawn by Dirichlet's distribution; its shares of operations follow
// from the time that an operation of each kind has taken in the blocks before. The distribution's
// mean makes up for what the kinds are behind or ahead of the workload's proportions, as far as
// some blocks can. Blocks are long enough for a lock.
//
// Thread safety: any thread, each with its own number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "loader/random.h"
#include "workload/settings.h"

namespace opjoule {

class MixBlocks {
 public:
  using Shares = std::array<double, kOperationKinds>;
  using Counts = std::array<uint64_t, kOperationKinds>;

  explicit MixBlocks(const WorkloadSettings& settings);

  // Begins a block where the last one is over; says whether one has begun since the thread's last
  // call, and then gives its shares of operations, which sum to 1.
  bool follow(uint32_t thread, int64_t now_board_ns, Shares* mix);
  // The thread is given `count` more operations of a kind.
  void add(uint32_t thread, OperationKind kind, uint64_t count) {
    std::atomic<uint64_t>& own = threads_[thread].counts[static_cast<size_t>(kind)];
    own.store(own.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
  // Blocks begun so far.
  [[nodiscard]] uint64_t count() const { return number_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Thread {
    std::array<std::atomic<uint64_t>, kOperationKinds> counts{};
    uint64_t block = 0;  // that it is in; its own thread's alone
  };

  void begin_block(int64_t now_board_ns);
  void learn(const Counts& in_block, double lasted_s);
  [[nodiscard]] Shares wanted_time(const Counts& so_far) const;

  const Shares proportion_;  // of operations
  const double length_s_;
  Random random_;
  std::vector<Thread> threads_;
  std::atomic<uint64_t> number_{0};
  std::atomic<int64_t> end_board_ns_{INT64_MIN};

  std::mutex mutex_;  // of what follows
  int64_t begin_board_ns_ = 0;
  Counts at_begin_{};
  Shares mix_{};
  Shares time_s_{};      // spent on each kind, ...
  Shares operations_{};  // ... and on how many; both fade
  Shares each_s_{};      // of one operation, of a single thread
};

// Shares that are random, sum to 1 and have these means, which sum to 1; variances are mean * (1 -
// mean) / (concentration + 1).
MixBlocks::Shares draw_dirichlet(Random& random, const MixBlocks::Shares& mean,
                                 double concentration);

}  // namespace opjoule
