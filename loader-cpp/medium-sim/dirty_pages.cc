#include "medium-sim/dirty_pages.h"

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "board/clock.h"

namespace opjoule {
namespace {

constexpr uint64_t kReadAheadBytes = 1 << 20;  // reads that may run ahead of the medium
constexpr uint64_t kNearBytes = 64 << 20;      // of the limit: what is dirtied within 10 to 20 ms
constexpr int kReleaseTrialsMax = 100'000;

}  // namespace

void DirtyPages::watch(pid_t pid) {
  count(board_ns(), 0);
  static_cast<void>(watched_.watch(pid));  // it may have ended
  met_.insert(pid);
  const WatchedSums sums = watched_.read(forks_);
  written_bytes_ = sums.written_net_bytes;
  read_bytes_ = sums.used.read_bytes;
}

void DirtyPages::meet(pid_t tid) {
  if (!met_.insert(tid).second) return;
  ProcFile status(("/proc/" + std::to_string(tid) + "/status").c_str());
  const auto pid = static_cast<pid_t>(number_after(status.read(), "\nTgid:"));
  if (pid == 0) return;
  static_cast<void>(watched_.watch_from_start(pid));
}

void DirtyPages::count(int64_t at_ns, uint64_t written_through) {
  const WatchedSums sums = watched_.read(forks_);
  int64_t written = sums.written_net_bytes - std::exchange(written_bytes_, sums.written_net_bytes);
  const int64_t read = sums.used.read_bytes - std::exchange(read_bytes_, sums.used.read_bytes);
  // The kernel counts such a write a moment after the queue, or never, if its page is dirty.
  const auto known = static_cast<int64_t>(written_through_ + written_through);
  if (written > 0) written = std::max<int64_t>(written - known, 0);
  written_through_ = written_through;
  const std::vector<pid_t> pids = watched_.alive();
  const uint64_t believed = by_calls_.believed(static_cast<uint64_t>(std::max<int64_t>(written, 0)),
                                               by_calls_.grown(pids), pids);
  if (believed > 0) queue_->dirtied(at_ns, believed);
  if (written < 0) queue_->cancelled(at_ns, static_cast<uint64_t>(-written));
  if (read > 0) queue_->read(at_ns, static_cast<uint64_t>(read));
  cache_->grown(believed + static_cast<uint64_t>(std::max<int64_t>(read, 0)));
}

void DirtyPages::look(uint64_t written_through) {
  const uint64_t forks = number_after(stat_.read(), "\nprocesses ");
  const bool forked = std::exchange(forks_, forks) != forks;
  count(board_ns(), written_through);
  if (forked) find_marked();
  hold_those_ahead();
}

// Processes whose parents ended before they were seen: daemons.
void DirtyPages::find_marked() {
  const std::vector<pid_t> pids = watched_.alive();
  const std::set<pid_t> followed(pids.begin(), pids.end());
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  std::set<pid_t> seen;
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    seen.insert(pid);
    if (looked_at_.count(pid) != 0 || followed.count(pid) != 0) continue;
    ProcFile environment(("/proc/" + std::to_string(pid) + "/environ").c_str());
    if (environment.read().find(marker_) != std::string_view::npos)
      static_cast<void>(watched_.watch_from_start(pid));
  }
  looked_at_ = std::move(seen);
  std::erase_if(met_, [&](pid_t tid) { return looked_at_.count(tid) == 0; });
}

bool DirtyPages::urgent() const {
  return holds_.any() || queue_->near_limit(kNearBytes) ||
         queue_->reads_waiting_bytes() > kReadAheadBytes;
}

void DirtyPages::hold_those_ahead() {
  if (holds_.any()) holds_.attend();
  if (!urgent()) return;
  const bool writes = queue_->above_limit();
  const bool reads = queue_->reads_waiting_bytes() > kReadAheadBytes;
  for (const ThreadGrowth& thread : amounts_.grown(watched_.alive()))
    if ((writes && thread.written_bytes > 0) || (reads && thread.read_bytes > 0))
      holds_.hold(thread.tid, thread.pid);
  if (!reads && queue_->below_limit()) holds_.release_all();
}

void DirtyPages::release_all() {
  for (int i = 0; i < kReleaseTrialsMax && holds_.any(); ++i) {
    holds_.release_all();
    ::sched_yield();
  }
}

}  // namespace opjoule
