// An edge whose moment is known from the clock before and after the call that makes it.
#pragma once

#include <cmath>

#include "board/clock.h"
#include "board/sync_carrier.h"

namespace opjoule {

// Calls `set_level`, which returns false on failure. The pin changes somewhere in between: a
// rectangular distribution. How wide it is differs from way to way (a character device takes about
// a microsecond, sysfs several), so every edge brings its own.
template <typename SetLevel>
bool timed_edge(int level, SyncEdge* edge, SetLevel set_level) {
  const int64_t before_ns = board_ns();
  const bool done = set_level();
  const int64_t after_ns = board_ns();
  edge->board_ns = before_ns + (after_ns - before_ns) / 2;
  edge->u_ns = static_cast<double>(after_ns - before_ns) / std::sqrt(12.0);
  edge->level = level;
  return done;
}

}  // namespace opjoule
