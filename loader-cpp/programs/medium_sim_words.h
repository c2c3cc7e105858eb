// The command line of medium-sim.
#pragma once

#include <optional>
#include <string>

#include "medium-sim/commands.h"

namespace opjoule {

struct MediumSimWords {
  std::string command;
  MediumServeOptions serve;
  MediumRunOptions run;
};

// The exit code where the program ends at once.
std::optional<int> parse(int argc, char** argv, MediumSimWords* out);

}  // namespace opjoule
