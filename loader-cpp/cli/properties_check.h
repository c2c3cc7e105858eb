// Properties from workload files and -p, and what they are checked against.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "loader/database.h"
#include "loader/properties.h"
#include "loader/status.h"
#include "workload/settings.h"

namespace opjoule {

// Files in their order, then -p, then --seed: later ones win.
Status gather_properties(const CommandOptions& options, Properties* out);
// kBadInput, with the engines there are.
Status require_engine(const std::string& name, const Engine** out);
// kBadInput for a key that neither the workload nor the engine knows. Keys of other databases
// ("rocksdb.x" with LevelDB) pass, so that one file can serve several; ignored_keys() tells them.
Status check_properties(const Properties& properties, const Engine& engine);

// The same without an engine: every engine's keys pass.
Status check_workload_properties(const Properties& properties);

// The given keys that have no effect because they are of another database, name the place of this
// one, or are of no use with a trace or without one.
std::vector<std::string> ignored_keys(const Properties& properties, const Engine& engine,
                                      bool has_trace);

// Refuses rows that do not fit into the board's memory, where the kernel would kill some process:
// each thread holds the row of its batch, the one it has read, and the one it merges and writes.
Status check_memory(const WorkloadSettings& settings);

}  // namespace opjoule
