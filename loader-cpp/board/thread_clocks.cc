#include "board/thread_clocks.h"

#include <time.h>

#include <cstdlib>

#include "board/clock.h"

namespace opjoule {
namespace {

// The clock of a thread by its number, as the kernel's ABI has it (include/linux/posix-timers.h:
// MAKE_THREAD_CPUCLOCK with CPUCLOCK_SCHED); glibc gives one for its own threads only.
clockid_t thread_clock(long thread) { return static_cast<clockid_t>((~thread << 3) | 4 | 2); }

}  // namespace

ThreadClocks::ThreadClocks() : tasks_(opendir("/proc/self/task")) {}

double ThreadClocks::process_cpu_s() {
  if (tasks_) {
    rewinddir(tasks_.get());
    while (const dirent* task = readdir(tasks_.get())) {
      timespec used;
      const long thread = std::strtol(task->d_name, nullptr, 10);  // 0 for . and ..
      if (thread > 0) clock_gettime(thread_clock(thread), &used);
    }
  }
  return opjoule::process_cpu_s();
}

}  // namespace opjoule
