// Threads that dirty pages or read from the real disk, and how they are held while the medium is
// behind.
//
// A thread is held by ptrace(2): PTRACE_SEIZE and PTRACE_INTERRUPT, then PTRACE_DETACH. Nobody but
// this program sees that, other threads go on, and if this program ends in any way the kernel lets
// the thread go on. Where ptrace is forbidden (Yama's ptrace_scope, a debugger) the whole process
// is stopped with SIGSTOP, which its parent can see, and the guardian continues it should this
// program end. docs/decisions/0013-a-medium-that-pushes-back.md has the alternatives.
//
// Thread safety: none; the tracer is the thread that calls.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "board/proc_file.h"
#include "medium-sim/guardian.h"

namespace opjoule {

// A thread and what it has used since the last look.
struct ThreadGrowth {
  pid_t tid = 0;
  pid_t pid = 0;
  uint64_t written_bytes = 0;
  uint64_t read_bytes = 0;
};

class ThreadAmounts {
 public:
  // Threads of these processes that wrote or read since the last call; a new thread's bytes count
  // whole.
  std::vector<ThreadGrowth> grown(const std::vector<pid_t>& pids);

 private:
  struct Thread {
    pid_t pid;
    std::unique_ptr<ProcFile> io;
    uint64_t written_bytes = 0;
    uint64_t read_bytes = 0;
    bool seen = true;
  };
  std::map<pid_t, Thread> threads_;
};

class Holds {
 public:
  explicit Holds(Guardian* guardian) : guardian_(guardian) {}
  ~Holds() { release_all(); }
  Holds(const Holds&) = delete;
  Holds& operator=(const Holds&) = delete;

  void hold(pid_t tid, pid_t pid);
  // Lets all go on; threads that have not come to a stop yet go on as soon as attend() finds them.
  void release_all();
  // Follows held threads that end or get a signal; to be called often while any() is true.
  void attend();
  [[nodiscard]] bool any() const { return !traced_.empty() || !stopped_.empty(); }
  // Threads and processes held since the start, and how many of them by a signal.
  [[nodiscard]] uint64_t held() const { return held_; }
  [[nodiscard]] uint64_t held_by_signal() const { return held_by_signal_; }

 private:
  struct Traced {
    bool stopped = false;
    bool releasing = false;
    int signal = 0;  // that it has been told and will get
  };
  void attend(pid_t tid, Traced* traced, bool* gone);

  Guardian* const guardian_;
  std::map<pid_t, Traced> traced_;
  std::vector<pid_t> stopped_;
  uint64_t held_ = 0;
  uint64_t held_by_signal_ = 0;
};

}  // namespace opjoule
