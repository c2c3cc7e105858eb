// The command of `probe run`: started in a process group of its own, and held back until it may
// begin.
//
// Thread safety: none; the process that starts it must have one thread.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "loader/status.h"

namespace opjoule {

struct CommandSettings {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // added
  bool pinned = false;
  cpu_set_t processors{};  // where pinned
  sigset_t signals{};      // the mask that it begins with
};

// "0,2-3" as a set of processors; kBadInput where it is none, or none of this board's.
Status parse_processors(const std::string& text, cpu_set_t* out);

class CommandProcess {
 public:
  // stdin is /dev/null, stdout and stderr are this process's, signals have their defaults. It gets
  // SIGTERM if this process ends before it.
  Status start(const CommandSettings& settings);
  ~CommandProcess();

  // Lets it begin. If the command cannot be started, the process says so on stderr and ends with
  // status 127 (no such command) or 126, as in a shell.
  void begin();
  [[nodiscard]] pid_t pid() const { return pid_; }
  // Whether it has ended; it can still be watched until reap().
  [[nodiscard]] bool ended() const;
  // Its exit status, 128 + N after signal N. To be called once, after it has ended.
  int reap();
  void terminate() const;
  // SIGKILL to its group.
  void kill() const;

 private:
  pid_t pid_ = 0;
  int gate_ = -1;  // a byte lets it begin
};

}  // namespace opjoule
