// How many pages the watched processes dirty and read, and who is held for it: keeps the queue's
// dirty bytes up to date.
//
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>

#include "board/proc_file.h"
#include "medium-sim/guardian.h"
#include "medium-sim/medium_queue.h"
#include "medium-sim/page_cache.h"
#include "medium-sim/writers.h"
#include "medium-sim/written_by_calls.h"
#include "processes/watched_processes.h"

namespace opjoule {

class DirtyPages {
 public:
  // `cache` learns of what is read and dirtied.
  DirtyPages(MediumQueue* queue, PageCache* cache, Guardian* guardian, std::string marker)
      : queue_(queue), cache_(cache), holds_(guardian), marker_(std::move(marker)) {}

  // Follows a process and its descendants from now on.
  void watch(pid_t pid);
  // Follows the process of a thread that made a trapped call, if it is not followed yet, from its
  // start.
  void meet(pid_t tid);

  // What was dirtied and read since the last call goes to the queue as of `at_ns`.
  // `written_through`: bytes of this that the queue has got as synced writes.
  void count(int64_t at_ns, uint64_t written_through);
  // Looks for new processes, too, and holds or releases writers and readers.
  void look(uint64_t written_through);
  // Whether look() is to be called again soon.
  [[nodiscard]] bool urgent() const;
  // Lets everybody go on.
  void release_all();
  [[nodiscard]] const Holds& holds() const { return holds_; }

 private:
  void find_marked();
  void hold_those_ahead();

  MediumQueue* const queue_;
  PageCache* const cache_;
  Holds holds_;
  const std::string marker_;  // in the environment of everything that is to be followed
  WatchedProcesses watched_;
  ThreadAmounts amounts_;
  WrittenByCalls by_calls_;
  ProcFile stat_{"/proc/stat"};
  uint64_t forks_ = 0;
  int64_t written_bytes_ = 0;
  int64_t read_bytes_ = 0;
  uint64_t written_through_ = 0;
  std::set<pid_t> met_;
  std::set<pid_t> looked_at_;
};

}  // namespace opjoule
