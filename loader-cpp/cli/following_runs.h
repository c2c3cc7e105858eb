// The runs that --then asks for: they follow a load or run in its process, on its open database.
#pragma once

#include <deque>

#include "cli/options.h"
#include "loader/database.h"
#include "loader/properties.h"
#include "loader/status.h"
#include "workload/settings.h"

namespace opjoule {

struct FollowingRun {
  Properties properties;  // the command's, with its own added
  WorkloadSettings settings;
};

// kBadInput for the first run that cannot be done, before anything is opened. Settings of the
// engine are those with which it is opened, so a run that follows cannot change them.
Status prepare_following(const CommandOptions& options, const Properties& properties,
                         const Engine& engine, std::deque<FollowingRun>* out);

}  // namespace opjoule
