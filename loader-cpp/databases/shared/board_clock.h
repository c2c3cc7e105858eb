// The board clock as the engines' events use it.
//
// Thread safety: any thread.
#pragma once

#include <time.h>

#include <cstdint>

namespace opjoule {

// CLOCK_MONOTONIC [ns].
inline int64_t board_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace opjoule
