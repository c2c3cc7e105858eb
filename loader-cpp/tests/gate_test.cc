// The gate in front of engines that let few in at once.
#include "databases/shared/gate.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace opjoule {
namespace {

TEST_CASE("nobody is inside with one who is alone") {
  Gate gate;
  gate.use(true);
  volatile int unguarded = 0;  // counts wrong where two are inside
  std::atomic<int> changed{0};
  const auto work = [&](int thread) {
    for (int i = 0; i < 20'000; ++i) {
      if (i % 4 == thread) {
        const Gate::Inside inside = gate.alone();
        unguarded = unguarded + 1;
      } else {
        const Gate::Inside inside = gate.together();
        const int seen = unguarded;
        if (unguarded != seen) ++changed;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  CHECK(unguarded == 20'000);
  CHECK(changed == 0);
}

TEST_CASE("one who wants to be alone gets in between others who never all leave") {
  Gate gate;
  gate.use(true);
  std::atomic<bool> done{false};
  std::atomic<int> together{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 8; ++i)
    others.emplace_back([&] {
      while (!done) {
        const Gate::Inside inside = gate.together();
        ++together;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --together;
      }
    });
  std::thread limit([&] {
    for (int i = 0; i < 6000 && !done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    done = true;
  });
  while (together < 4) std::this_thread::yield();
  {
    const Gate::Inside inside = gate.alone();
    CHECK(together == 0);
    CHECK_FALSE(done);
  }
  done = true;
  limit.join();
  for (std::thread& other : others) other.join();
}

TEST_CASE("a gate that is not used lets everybody in") {
  Gate gate;
  const Gate::Inside one = gate.alone();
  const Gate::Inside two = gate.alone();
}

}  // namespace
}  // namespace opjoule
