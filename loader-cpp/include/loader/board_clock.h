// The board clock: CLOCK_MONOTONIC, the one clock of every time stamp that is made on the board.
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

}  // namespace opjoule
