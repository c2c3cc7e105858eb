// An edge whose time is known from the clock before and after the call that makes it.
#pragma once

#include <cmath>

#include "board/clock.h"
#include "board/sync_carrier.h"

namespace opjoule {

// Calls `set_level`, which returns false on failure. The pin changes at some moment in between
// (rectangular distribution). How long the call takes differs (about a microsecond for a character
// device, several for sysfs), so every edge has an uncertainty of its own.
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
