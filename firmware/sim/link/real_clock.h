// CLOCK_MONOTONIC of this computer: host_ns, and board_ns of the workload that the live input comes
// from.
#pragma once

#include <time.h>

#include <cstdint>

namespace opjoule::rig {

inline std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace opjoule::rig
