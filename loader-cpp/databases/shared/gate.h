// Lets the threads of one process into an engine one at a time, or several together. For engines
// that allow no more, and whose own locks cost more than an operation: a lock that goes from thread
// to thread wakes one at every operation, and moves the engine's pages from processor to processor.
//
// A thread that finds it closed sleeps for kSleepNs and tries again: leaving wakes nobody, so that
// a running thread does many operations one after the other. A thread that has tried kPatience
// times enters before all others. The wait is part of the operation's latency.
//
// Thread safety: any thread. A gate that is not used costs nothing.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace opjoule {

class Gate {
 public:
  // Leaves at the end of its scope.
  class Inside {
   public:
    Inside(Gate* gate, bool alone) : gate_(gate), alone_(alone) {}
    ~Inside() {
      if (gate_ == nullptr) return;
      if (alone_)
        gate_->state_.store(0, std::memory_order_release);
      else
        gate_->state_.fetch_sub(1, std::memory_order_release);
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Gate* gate_;
    bool alone_;
  };

  // To be called before there are clients: whether the gate is needed.
  void use(bool used) { used_ = used; }

  // Nobody else is inside.
  [[nodiscard]] Inside alone() {
    if (!used_) return {nullptr, true};
    wait_until([this] { return enter_alone(); });
    return {this, true};
  }
  // Only others that entered together are inside.
  [[nodiscard]] Inside together() {
    if (!used_) return {nullptr, false};
    wait_until([this] { return enter_together(); });
    return {this, false};
  }

 private:
  static constexpr int32_t kAlone = -1;
  static constexpr long kSleepNs = 1'000'000;
  static constexpr int kPatience = 100;

  template <typename Enter>
  void wait_until(Enter enter) {
    for (int looks = 0; looks < kPatience; ++looks) {
      if (!claimed_.load(std::memory_order_relaxed) && enter()) return;
      sleep();
    }
    while (claimed_.exchange(true)) sleep();
    while (!enter()) sched_yield();  // those inside leave soon, and nobody else enters
    claimed_.store(false);
  }

  bool enter_alone() {
    int32_t nobody = 0;
    return state_.compare_exchange_strong(nobody, kAlone, std::memory_order_acquire);
  }
  bool enter_together() {
    int32_t inside = state_.load(std::memory_order_relaxed);
    while (inside >= 0)
      if (state_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire)) return true;
    return false;
  }
  static void sleep() {
    const timespec pause{0, kSleepNs};
    nanosleep(&pause, nullptr);
  }

  alignas(64) std::atomic<int32_t> state_{0};  // how many are inside together, or kAlone
  std::atomic<bool> claimed_{false};           // by one that enters before everybody else
  alignas(64) bool used_ = false;
};

}  // namespace opjoule
