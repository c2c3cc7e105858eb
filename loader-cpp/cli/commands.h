// The loader's commands; each gives the process's exit code.
#pragma once

#include "cli/options.h"
#include "workload/settings.h"

namespace opjoule {

int run_phase_command(const CommandOptions& options, Phase phase);
int trace_command(const CommandOptions& options);
int databases_command();
int properties_command(const CommandOptions& options);

}  // namespace opjoule
