// A control group (cgroup v2) for the command of `probe run`: a process that leaves the command's
// process group, as a daemon does, is still in the control group, and ends with it. It only groups:
// no controller is enabled.
//
// Source: docs.kernel.org, admin-guide/cgroup-v2. Thread safety: none.
#pragma once

#include <sys/types.h>

#include <string>

namespace opjoule {

class CommandCgroup {
 public:
  CommandCgroup() = default;
  // Kills all processes left in it, and removes it.
  ~CommandCgroup();
  CommandCgroup(const CommandCgroup&) = delete;
  CommandCgroup& operator=(const CommandCgroup&) = delete;

  // Makes it below this process's own and puts `pid` into it; nothing is done without cgroup v2,
  // or where this user may not (most may not but root).
  void make(pid_t pid);
  // SIGKILL to every process in it; does nothing if there is no group.
  void kill() const;

 private:
  std::string folder_;
};

}  // namespace opjoule
