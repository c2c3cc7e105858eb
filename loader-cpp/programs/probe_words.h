// The command line of the probe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "probe/commands.h"

namespace opjoule {

struct ProbeWords {
  std::string command;
  ServeOptions serve;
  RunOptions run;
  MarkOptions mark;
  std::string gpio_sync;
  uint32_t gpio_pulses = 0;
};

// The exit code where the program ends at once.
std::optional<int> parse(int argc, char** argv, ProbeWords* out);

}  // namespace opjoule
