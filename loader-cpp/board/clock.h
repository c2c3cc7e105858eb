// The board clock, waiting by it, and the processor time of this process.
//
// Thread safety: any thread.
#pragma once

#include <time.h>

#include <cstdint>

#include "loader/board_clock.h"

namespace opjoule {

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
