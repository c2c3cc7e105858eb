// What the command line asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opjoule {

struct CommandOptions {
  std::string database;
  std::string path;
  std::vector<std::string> workload_files;
  std::vector<std::string> assignments;  // -p key=value
  uint32_t threads = 0;                  // 0: property threadcount
  std::optional<int64_t> seed;
  std::string operation_log;
  std::string events;
  std::string system;
  uint32_t system_period_ms = 100;
  std::string sync;
  std::string trace;  // file of operations, "-" for stdin
  bool resume = false;
  bool progress = false;
  bool check = false;
  bool steering = false;      // clock
  double seconds = 0;         // idle
  std::string phase = "run";  // trace
  std::string out;            // trace
  uint32_t pulses = 0;        // gpio
  uint32_t bits = 63;         // sync
  uint32_t bit_ms = 100;      // sync
  std::string pattern;        // sync: zeros and ones; empty: a sequence of `bits`
};

}  // namespace opjoule
