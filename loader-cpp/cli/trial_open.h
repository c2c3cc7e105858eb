// Whether an engine takes its settings, found by opening a new, empty database with them.
#pragma once

#include "loader/database.h"
#include "workload/settings.h"

namespace opjoule {

// Opens and closes an empty database in a folder of its own under the temporary directory, and
// removes it. An engine that is a server is passed over. The exit code: 0 where it opened, with a
// line on stdout that names the ignored keys; else the failure is told on stderr, kBadInput for a
// setting that the engine does not take.
int check_engine(const Engine& engine, const Properties& properties,
                 const WorkloadSettings& settings, bool has_trace);

}  // namespace opjoule
