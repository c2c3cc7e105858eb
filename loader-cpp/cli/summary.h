// The last JSON line of a command.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "board/proc_file.h"
#include "loader/database.h"
#include "workload/results.h"
#include "workload/settings.h"

namespace opjoule {

struct Summary {
  std::string command;
  std::string engine;
  std::string engine_version;
  const Properties* properties = nullptr;
  const WorkloadSettings* settings = nullptr;
  std::vector<std::string> ignored;  // properties without effect
  PhaseResults results;
  bool not_found_expected = false;
  double duration_s = 0;
  double cpu_s = 0;  // of the process, during the phase
  double settle_s = 0;
  bool settled = false;
  bool settle_asked = true;
  bool opening_settled = true;  // what opening began ended before the phase
  bool interrupted = false;
  bool out_of_time = false;  // maxexecutiontime ended the phase, before its operations did
  bool replayed = false;     // the operations came from a trace
  uint64_t mix_blocks = 0;   // randomised blocks that it had
  std::string failure;       // why the command failed, empty if it did not
  std::map<std::string, std::string> engine_settings;
  ProcessMemory memory_at_end;  // of the phase, before settling
  uint64_t peak_memory_bytes = 0;
  uint64_t database_bytes = 0;
  bool resumed = false;
  uint64_t rows_before = 0;  // of a resumed load
  uint64_t rows_after = 0;
  uint64_t dropped_events = 0;
};

// {"summary":{...}}: docs/reference/loader.md lists the members and their units.
std::string summary_json(const Summary& summary);
// {"ignored":[...]}: what --check tells.
std::string ignored_json(const std::vector<std::string>& keys);

}  // namespace opjoule
