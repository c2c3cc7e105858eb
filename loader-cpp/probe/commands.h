// The probe's commands; each gives the process's exit code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opjoule {

inline constexpr const char* kProbe = "probe";

inline constexpr const char* kBoardScope = "board";
inline constexpr const char* kProcessesScope = "processes";

struct ServeOptions {
  std::string folder;
  std::string sync;  // carrier; empty: no sync line
  uint64_t seed = 1;
  std::string storage;  // folder on the medium; empty: none
  uint32_t period_ms = 100;
  std::string live;             // FIFO; empty: none
  uint32_t live_period_ms = 0;  // 0: period_ms
  double silence_s = 20;
  std::string scope = kBoardScope;
  std::string kernel_files;  // folder of a simulated medium's stat and meminfo; empty: the kernel's
};

struct RunOptions {
  std::string folder;
  std::string tag;
  std::string marks;      // socket; empty: FOLDER/marks, where there is one
  std::string phase;      // marked from its start to its end; empty: none
  std::string pin;        // processors, as in 0,2-3; empty: all
  double silence_s = 20;  // 0: nobody has to write to stdin
  double kill_after_s = 10;
  std::vector<std::string> command;
};

struct MarkOptions {
  std::string socket;  // empty: $OPJOULE_MARKS
  std::string file;
  std::vector<std::string> words;
};

int serve_command(const ServeOptions& options);
int run_command(const RunOptions& options);
int mark_command(const MarkOptions& options);

}  // namespace opjoule
