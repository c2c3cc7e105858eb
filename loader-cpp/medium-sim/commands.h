// The commands of medium-sim; each gives the process's exit code.
#pragma once

#include <string>
#include <vector>

#include "medium-sim/medium_queue.h"

namespace opjoule {

inline constexpr const char* kMediumSim = "medium-sim";
// In the environment of what `medium-sim run` starts: the socket it was given.
inline constexpr const char* kMediumVariable = "OPJOULE_MEDIUM_SIM";

struct MediumServeOptions {
  std::string socket;
  std::string state;         // folder of stat and meminfo
  std::string live;          // FIFO; empty: none
  std::string files;         // folder of the medium's files, for the page cache; empty: none
  uint64_t cache_bytes = 0;  // most bytes of them in memory; 0: no limit
  MediumSettings medium;
};

struct MediumRunOptions {
  std::string socket;
  std::vector<std::string> command;
};

int medium_serve_command(const MediumServeOptions& options);
int medium_run_command(const MediumRunOptions& options);

}  // namespace opjoule
