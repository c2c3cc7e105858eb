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
  std::string trace;              // file of operations, "-" for stdin
  std::vector<std::string> then;  // properties of the runs that follow in the same process
  bool resume = false;
  bool progress = false;
  bool check = false;
  std::string phase = "run";  // trace
  std::string out;            // trace
};

}  // namespace opjoule
