// The board clock: CLOCK_MONOTONIC, the one clock of every time stamp the loader writes.
//
// Thread safety: any thread.
#pragma once

#include <time.h>

#include <cstdint>

namespace opjoule {

inline constexpr int64_t kNsPerSecond = 1'000'000'000;

// CLOCK_MONOTONIC [ns].
inline int64_t board_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * kNsPerSecond + now.tv_nsec;
}

// Processor time this process has used since its start [s], all threads.
inline double process_cpu_s() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Sleeps until the board clock shows `deadline_board_ns`, at most; a signal ends it early.
inline void sleep_until(int64_t deadline_board_ns) {
  const timespec deadline{static_cast<time_t>(deadline_board_ns / kNsPerSecond),
                          static_cast<long>(deadline_board_ns % kNsPerSecond)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
}

}  // namespace opjoule
