// A control group (cgroup v2) for the command of `probe run`: what leaves the command's process
// group, as a daemon does, is still in it, and ends with it. No controller is switched on: it
// groups and does nothing else.
//
// Source: docs.kernel.org, admin-guide/cgroup-v2. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <string>

namespace opjoule {

class CommandCgroup {
 public:
  CommandCgroup() = default;
  // Kills what is left in it, and removes it.
  ~CommandCgroup();
  CommandCgroup(const CommandCgroup&) = delete;
  CommandCgroup& operator=(const CommandCgroup&) = delete;

  // Makes it below this process's own and puts `pid` into it; nothing is done without cgroup v2,
  // or where this user may not (most may not but root).
  void make(pid_t pid);
  // SIGKILL to every process in it; nothing where it was not made.
  void kill() const;

 private:
  std::string folder_;
};

}  // namespace opjoule
