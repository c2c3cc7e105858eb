#include "workload/insert_counter.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace opjoule {
namespace {

TEST_CASE("a number counts as acknowledged only with all below it") {
  InsertCounter counter(10, 2);
  CHECK(counter.acknowledged_end() == 10);
  CHECK(counter.take(0) == 10);
  CHECK(counter.take(1) == 11);
  CHECK(counter.acknowledged_end() == 10);
  counter.acknowledge(1);
  CHECK(counter.acknowledged_end() == 10);
  counter.acknowledge(0);
  CHECK(counter.acknowledged_end() == 12);
}

TEST_CASE("threads never see an acknowledged end above a number in flight") {
  constexpr uint32_t kThreads = 4;
  constexpr uint64_t kNumbers = 20'000;
  InsertCounter counter(0, kThreads);
  std::vector<std::atomic<bool>> inserted(kThreads * kNumbers);
  std::atomic<int> early{0};
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kNumbers; ++i) {
        inserted[counter.take(thread)].store(true);
        counter.acknowledge(thread);
        const uint64_t end = counter.acknowledged_end();
        if (end > 0 && !inserted[end - 1].load()) ++early;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(early == 0);
  CHECK(counter.acknowledged_end() == kThreads * kNumbers);
}

}  // namespace
}  // namespace opjoule
