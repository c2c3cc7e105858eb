// What some processes and all their descendants use: processor time, bytes read and written,
// memory.
//
// The processor time of a process is read from its clock (clock_getcpuclockid(3)); that of children
// it has waited for is in cutime and cstime of its /proc/PID/stat, their bytes in its /proc/PID/io
// (Linux, kernel/exit.c, wait_task_zombie). A process that has ended and was not waited for keeps
// its last values. Descendants are found through /proc/PID/task/TID/children, or, where the kernel
// has no such file (CONFIG_PROC_CHILDREN), through every /proc/PID/stat. A descendant that was seen
// once is followed even after its parent has ended; one whose parent ends before it was seen is
// missed. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "board/thread_clocks.h"
#include "loader/status.h"

namespace opjoule {

struct ProcessUsage {
  int64_t cpu_ns = 0;
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
};

struct WatchedSums {
  int64_t board_ns = 0;  // when the processors' clocks were read
  ProcessUsage used;     // by each since it is watched; never decreases
  // As used.written_bytes, but less where dirty pages were dropped before they were written.
  int64_t written_net_bytes = 0;
  uint64_t rss_bytes = 0;  // of those alive
  uint64_t rss_anon_bytes = 0;
};

// How descendants are found.
enum class FindChildren { kAsTheKernelCan, kThroughEveryStat };

class WatchedProcesses {
 public:
  explicit WatchedProcesses(FindChildren how = FindChildren::kAsTheKernelCan);
  ~WatchedProcesses();

  // Counts `pid` and its descendants from now on. kBadInput where there is no such process.
  Status watch(pid_t pid);
  // Counts it and its descendants from their own beginnings: one that would have been followed
  // already, had it been seen in time.
  Status watch_from_start(pid_t pid);
  // No longer counts it and its descendants; what they have used stays. One that has ended but was
  // not waited for yet is counted to its end.
  void unwatch(pid_t pid);
  // Counts this process's own processor time while `counted`.
  void count_self(bool counted);

  // forks: BoardCounters::forks read just before; new descendants are looked for when it grows.
  WatchedSums read(uint64_t forks);
  // Processes that are followed now.
  [[nodiscard]] std::vector<pid_t> alive() const;
  // Whether the bytes of some process could not be read, since it belongs to another user.
  [[nodiscard]] bool bytes_denied() const { return bytes_denied_; }

 private:
  class Process;

  bool add(pid_t pid, pid_t root);
  [[nodiscard]] Process* find(pid_t pid) const;
  void find_descendants();
  void find_through_every_stat();
  bool read_clocks();
  void read_all();
  void hand_over_ended();
  void settle(Process& process);
  [[nodiscard]] int64_t self_ns();

  const bool through_every_stat_;
  std::vector<std::unique_ptr<Process>> processes_;  // parents mostly before their children
  ProcessUsage base_;  // of those no longer followed, less what was used before they were watched
  ProcessUsage shown_;
  ThreadClocks own_clocks_;
  bool count_self_ = false;
  int64_t self_from_ns_ = 0;
  uint64_t forks_ = 0;
  bool look_again_ = false;
  bool bytes_denied_ = false;
};

}  // namespace opjoule
