#include "probe/running_commands.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "board/proc_file.h"

namespace opjoule {
namespace {

constexpr double kAfterKillS = 1;

// Field 22 of /proc/PID/stat, which shows whether the number now belongs to another process; 0 if
// there is no such process.
uint64_t start_ticks(pid_t pid) {
  ProcFile file(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const std::string_view stat = file.read();
  size_t at = stat.rfind(") ");
  for (int field = 2; field < 22 && at != std::string_view::npos; ++field)
    at = stat.find(' ', at + 1);
  return at == std::string_view::npos ? 0 : nth_number(stat.substr(at), 0);
}

}  // namespace

void RunningCommands::add(pid_t pid) {
  const std::lock_guard lock(mutex_);
  started_[pid] = start_ticks(pid);
}

void RunningCommands::remove(pid_t pid) {
  const std::lock_guard lock(mutex_);
  started_.erase(pid);
  removed_.notify_all();
}

bool RunningCommands::wait_until_none(std::unique_lock<std::mutex>& lock, double limit_s) {
  return removed_.wait_for(lock, std::chrono::duration<double>(limit_s),
                           [this] { return started_.empty(); });
}

void RunningCommands::stop(double limit_s) {
  std::unique_lock lock(mutex_);
  std::erase_if(started_, [](const auto& one) { return start_ticks(one.first) != one.second; });
  for (const auto& [pid, start] : started_) ::kill(pid, SIGTERM);
  if (wait_until_none(lock, limit_s)) return;
  for (const auto& [pid, start] : started_)
    if (start_ticks(pid) == start && ::getpgid(pid) == pid) ::kill(-pid, SIGKILL);
  wait_until_none(lock, kAfterKillS);
}

}  // namespace opjoule
