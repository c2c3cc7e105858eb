// One process that WatchedProcesses follows, through files of /proc that stay open: they belong to
// this process whatever its number is used for later.
//
// Thread safety: none.
#pragma once

#include <dirent.h>
#include <time.h>

#include <memory>
#include <vector>

#include "board/proc_file.h"
#include "probe/watched_processes.h"

namespace opjoule {

class WatchedProcesses::Process {
 public:
  Process(pid_t pid, pid_t root);

  // Reads the clock alone; false where the process is gone, whose last values stay.
  bool read_clock();
  // Reads the rest; the same.
  bool read_files();
  // Reads bytes and memory, but not whom it has waited for.
  void read_amounts();
  // Numbers of its children, through /proc/PID/task/TID/children.
  void append_children(std::vector<pid_t>* out);

  // What it has used, with those of its children that it has waited for.
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

  // For the settling of descendants that have ended.
  ProcessUsage before;  // waited_ns and bytes at the last sample
  ProcessUsage spare;   // what it waited for since then, and no ended descendant accounted for
  ProcessUsage lost;    // last seen of ended descendants, not settled yet

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
