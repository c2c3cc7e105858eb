// The commands that `probe run` has started, which end with `probe serve`.
//
// Thread safety: any thread.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>

namespace opjoule {

class RunningCommands {
 public:
  // pid: also its process group's number.
  void add(pid_t pid);
  void remove(pid_t pid);
  // SIGTERM to each; after `limit_s`, SIGKILL to the groups of those that are still there.
  void stop(double limit_s);

 private:
  bool wait_until_none(std::unique_lock<std::mutex>& lock, double limit_s);

  std::mutex mutex_;
  std::condition_variable removed_;
  std::map<pid_t, uint64_t> started_;  // pid: start time in ticks since boot
};

}  // namespace opjoule
