// Processor time of this process up to the very moment.
//
// For a thread that runs on another processor, Linux updates the time used only at each tick of its
// scheduler (4 ms at 250 Hz), and CLOCK_PROCESS_CPUTIME_ID adds up these values: a thread that
// starts to work is seen up to one tick late. Reading the clock of a thread updates its value
// (Linux 6.1, kernel/sched/core.c, task_sched_runtime).
//
// Thread safety: none; one object a thread.
#pragma once

#include <dirent.h>

#include <memory>

namespace opjoule {

class ThreadClocks {
 public:
  ThreadClocks();

  // All threads of this process since its start [s]; as process_cpu_s() where /proc is missing.
  double process_cpu_s();

 private:
  struct Close {
    void operator()(DIR* folder) const { closedir(folder); }
  };
  std::unique_ptr<DIR, Close> tasks_;
};

}  // namespace opjoule
