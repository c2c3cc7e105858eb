// One process that WatchedProcesses follows, through files of /proc that stay open: they refer to
// this process even if its number is given to another one later.
//
// Thread safety: none.
#pragma once

#include <dirent.h>
#include <time.h>

#include <memory>
#include <vector>

#include "board/proc_file.h"
#include "processes/watched_processes.h"

namespace opjoule {

class WatchedProcesses::Process {
 public:
  Process(pid_t pid, pid_t root);

  // Reads only the clock; false if the process has gone, whose last values stay.
  bool read_clock();
  // Reads the rest; false as above.
  bool read_files();
  // Reads bytes and memory, but not the children that it has waited for.
  void read_amounts();
  // Numbers of its children, through /proc/PID/task/TID/children.
  void append_children(std::vector<pid_t>* out);

  // What it has used, including the children that it has waited for.
  [[nodiscard]] ProcessUsage used() const;

  const pid_t pid;
  const pid_t root;  // the process that was asked to be watched
  pid_t parent = 0;
  bool alive = true;
  bool bytes_denied = false;
  int64_t clock_ns = 0;
  int64_t waited_ns = 0;  // in ticks of 10 ms
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  uint64_t rss_bytes = 0;
  uint64_t rss_anon_bytes = 0;

  // For accounting for descendants that have ended.
  ProcessUsage before;  // waited_ns and bytes at the last sample
  ProcessUsage spare;   // waited for since then, but not yet matched with an ended descendant
  ProcessUsage lost;    // last values of ended descendants that it has not waited for yet

 private:
  struct CloseFolder {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  ProcFile stat_;
  ProcFile io_;
  ProcFile statm_;
  std::unique_ptr<DIR, CloseFolder> tasks_;
  clockid_t clock_ = 0;
  bool has_clock_ = false;
};

// The parent's number in the text of a /proc/PID/stat; 0 where it has none.
pid_t parent_in_stat(std::string_view stat);

}  // namespace opjoule
