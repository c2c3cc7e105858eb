// The command line of the loader.
#pragma once

#include <optional>
#include <string>

#include "cli/options.h"

namespace opjoule {

struct LoaderWords {
  std::string command;
  CommandOptions options;
};

// The exit code where the program ends at once.
std::optional<int> parse(int argc, char** argv, LoaderWords* out);

}  // namespace opjoule
