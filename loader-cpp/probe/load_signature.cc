#include "probe/load_signature.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "board/clock.h"
#include "board/stop_signal.h"

namespace opjoule {
namespace {

// Idle time before the first bit and after the last one, which is part of the fit.
constexpr int64_t kMarginNs = 250'000'000;

// One change of the load on one processor.
struct Change {
  int64_t at_ns = 0;       // board_ns
  int64_t missing_ns = 0;  // of the busy stretch next to it: time that other programs had
};

int64_t thread_cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

// Keeps one processor busy during the ones of the pattern. Returns its changes: idle to busy first,
// busy to idle last.
std::vector<Change> play(const std::string& bits, int64_t start_ns, int64_t bit_ns) {
  std::vector<Change> changes;
  size_t at = 0;
  while (at < bits.size() && !stop_requested()) {
    size_t end = at;
    while (end < bits.size() && bits[end] == bits[at]) ++end;
    const int64_t end_ns = start_ns + static_cast<int64_t>(end) * bit_ns;
    if (bits[at] == '0') {
      while (board_ns() < end_ns && !stop_requested())
        sleep_until(std::min(end_ns, board_ns() + kNsPerSecond));
    } else {
      const int64_t from_ns = board_ns();
      const int64_t cpu_ns = thread_cpu_ns();
      volatile uint64_t work = 1;
      while (board_ns() < end_ns && !stop_requested())
        for (int step = 0; step < 1000; ++step) work = work * 6364136223846793005u + 1;
      const int64_t to_ns = board_ns();
      const int64_t missing_ns = std::max<int64_t>(to_ns - from_ns - (thread_cpu_ns() - cpu_ns), 0);
      changes.push_back({from_ns, missing_ns});
      changes.push_back({to_ns, missing_ns});
    }
    at = end;
  }
  return changes;
}

// Each change is at the moment when half of the processors had made it. u_ns comes from when the
// others made theirs, and from the time that other programs took of the busy stretch, all of which
// may lie at this end.
std::vector<LoadChange> changes_of_all(const std::vector<std::vector<Change>>& played) {
  size_t count = played.front().size();
  for (const std::vector<Change>& changes : played) count = std::min(count, changes.size());
  std::vector<LoadChange> all;
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> at;
    double missing_ns = 0;
    for (const std::vector<Change>& changes : played) {
      at.push_back(changes[i].at_ns);
      missing_ns += static_cast<double>(changes[i].missing_ns) / static_cast<double>(played.size());
    }
    std::sort(at.begin(), at.end());
    const int64_t middle_ns = (at[(at.size() - 1) / 2] + at[at.size() / 2]) / 2;
    const double spread_ns = static_cast<double>(at.back() - at.front()) / std::sqrt(12.0);
    all.push_back(
        {middle_ns, std::hypot(spread_ns, missing_ns / std::sqrt(3.0)), i % 2 == 0 ? 1 : 0});
  }
  return all;
}

}  // namespace

bool is_signature(const std::string& bits) {
  return !bits.empty() && bits.size() <= kSignatureBitsMax &&
         bits.find_first_not_of("01") == std::string::npos;
}

LoadSignature play_signature(const std::string& bits, uint32_t bit_ms) {
  LoadSignature signature;
  const int64_t bit_ns = int64_t{bit_ms} * 1'000'000;
  signature.start_board_ns = board_ns() + kMarginNs;
  std::vector<std::vector<Change>> played(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> players;
  for (std::vector<Change>& changes : played)
    players.emplace_back([&] {
      sleep_until(signature.start_board_ns);
      changes = play(bits, signature.start_board_ns, bit_ns);
    });
  for (std::thread& player : players) player.join();
  signature.end_board_ns = board_ns();
  signature.changes = changes_of_all(played);
  sleep_until(signature.end_board_ns + kMarginNs);
  return signature;
}

}  // namespace opjoule
