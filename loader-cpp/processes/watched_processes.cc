#include "processes/watched_processes.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "board/clock.h"
#include "processes/watched_process.h"

namespace opjoule {
namespace {

// cutime and cstime are each rounded down to ticks of 10 ms: less than two ticks mean nothing.
constexpr int64_t kTicksNs = 20'000'000;

bool has_children_file() {
  const std::string self = std::to_string(::getpid());
  return ::access(("/proc/self/task/" + self + "/children").c_str(), R_OK) == 0;
}

void add_to(ProcessUsage* sum, const ProcessUsage& more) {
  sum->cpu_ns += more.cpu_ns;
  sum->read_bytes += more.read_bytes;
  sum->written_bytes += more.written_bytes;
}

// How much of `lost` is not contained in what was waited for in the meantime; what is left over of
// the latter is kept in `spare`.
int64_t missing(int64_t lost, int64_t waited, int64_t* spare) {
  const int64_t had = waited + *spare;
  *spare = std::clamp<int64_t>(had - lost, 0, std::max<int64_t>(waited, 0));
  return std::max<int64_t>(lost - had, 0);
}

}  // namespace

WatchedProcesses::WatchedProcesses(FindChildren how)
    : through_every_stat_(how == FindChildren::kThroughEveryStat || !has_children_file()) {}

WatchedProcesses::~WatchedProcesses() = default;

WatchedProcesses::Process* WatchedProcesses::find(pid_t pid) const {
  for (const auto& process : processes_)
    if (process->pid == pid) return process.get();
  return nullptr;
}

bool WatchedProcesses::add(pid_t pid, pid_t root) {
  auto process = std::make_unique<Process>(pid, root);
  if (!process->alive) return false;
  processes_.push_back(std::move(process));
  return true;
}

Status WatchedProcesses::watch_from_start(pid_t pid) {
  if (find(pid) != nullptr) return Status::ok();
  if (!add(pid, pid)) return {StatusCode::kBadInput, "there is no process " + std::to_string(pid)};
  find_descendants();
  return Status::ok();
}

Status WatchedProcesses::watch(pid_t pid) {
  if (find(pid) != nullptr) return Status::ok();
  if (Status status = watch_from_start(pid); !status.is_ok()) return status;
  for (const auto& process : processes_) {
    if (process->root != pid) continue;
    const ProcessUsage used = process->used();
    add_to(&base_, {-used.cpu_ns, -used.read_bytes, -used.written_bytes});
  }
  return Status::ok();
}

void WatchedProcesses::unwatch(pid_t pid) {
  find_descendants();
  read_clocks();
  read_all();
  std::erase_if(processes_, [&](const std::unique_ptr<Process>& process) {
    if (process->root != pid) return false;
    add_to(&base_, process->used());
    add_to(&base_, process->lost);
    return true;
  });
}

int64_t WatchedProcesses::self_ns() {
  return static_cast<int64_t>(own_clocks_.process_cpu_s() * 1e9);
}

void WatchedProcesses::count_self(bool counted) {
  if (counted == count_self_) return;
  if (counted)
    self_from_ns_ = self_ns();
  else
    base_.cpu_ns += self_ns() - self_from_ns_;
  count_self_ = counted;
}

void WatchedProcesses::find_descendants() {
  if (through_every_stat_) return find_through_every_stat();
  std::vector<pid_t> children;
  for (size_t i = 0; i < processes_.size(); ++i) {  // grows
    children.clear();
    processes_[i]->append_children(&children);
    for (const pid_t child : children)
      if (find(child) == nullptr) add(child, processes_[i]->root);
  }
}

void WatchedProcesses::find_through_every_stat() {
  if (processes_.empty()) return;
  std::vector<std::pair<pid_t, pid_t>> child_of;  // child, parent
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid <= 0) continue;
    ProcFile stat(("/proc/" + std::to_string(pid) + "/stat").c_str());
    child_of.emplace_back(pid, parent_in_stat(stat.read()));
  }
  for (size_t i = 0; i < processes_.size(); ++i)  // grows
    for (const auto& [child, parent] : child_of)
      if (parent == processes_[i]->pid && find(child) == nullptr) add(child, processes_[i]->root);
}

// What ended processes have used is added to the nearest living ancestor, which may have waited for
// them, or else to the base.
void WatchedProcesses::hand_over_ended() {
  for (const auto& process : processes_) {
    if (process->alive) continue;
    ProcessUsage last = process->used();
    add_to(&last, process->lost);
    const Process* ancestor = process.get();
    for (size_t step = 0; ancestor != nullptr && !ancestor->alive; ++step)
      ancestor = step < processes_.size() ? find(ancestor->parent) : nullptr;
    if (ancestor == nullptr)
      add_to(&base_, last);
    else
      add_to(&find(ancestor->pid)->lost, last);
  }
  std::erase_if(processes_, [](const auto& process) { return !process->alive; });
}

void WatchedProcesses::settle(Process& process) {
  // The ancestor may have waited for them since it was read.
  const ProcessUsage& lost = process.lost;
  if (lost.cpu_ns + lost.read_bytes + lost.written_bytes > 0 && !process.read_files()) return;
  const int64_t cpu_ns =
      missing(lost.cpu_ns, process.waited_ns - process.before.cpu_ns, &process.spare.cpu_ns);
  if (cpu_ns > kTicksNs) base_.cpu_ns += cpu_ns;
  base_.read_bytes += missing(lost.read_bytes, process.read_bytes - process.before.read_bytes,
                              &process.spare.read_bytes);
  base_.written_bytes +=
      missing(lost.written_bytes, process.written_bytes - process.before.written_bytes,
              &process.spare.written_bytes);
  process.lost = {};
  process.before = {process.waited_ns, process.read_bytes, process.written_bytes};
}

bool WatchedProcesses::read_clocks() {
  bool all = true;
  for (const auto& process : processes_) all = process->read_clock() && all;
  return all;
}

void WatchedProcesses::read_all() {
  bool ended = false;
  for (const auto& process : processes_) ended = !process->read_files() || ended;
  if (ended) hand_over_ended();
  for (const auto& process : processes_) settle(*process);
}

std::vector<pid_t> WatchedProcesses::alive() const {
  std::vector<pid_t> pids;
  for (const auto& process : processes_) pids.push_back(process->pid);
  return pids;
}

WatchedSums WatchedProcesses::read(uint64_t forks) {
  // A list of children may leave some out while others end (proc_tid_children(5)): after a fork it
  // is read twice.
  const bool look = forks != forks_ || look_again_;
  if (look) {
    look_again_ = forks != forks_;
    forks_ = forks;
    find_descendants();
  }
  WatchedSums sums;
  const int64_t self = count_self_ ? self_ns() - self_from_ns_ : 0;
  const bool all_there = read_clocks();
  sums.board_ns = board_ns();
  // If nothing was forked and nothing has ended, nothing was waited for.
  if (look || !all_there)
    read_all();
  else
    for (const auto& process : processes_) process->read_amounts();
  ProcessUsage now = base_;
  now.cpu_ns += self;
  for (const auto& process : processes_) {
    add_to(&now, process->used());
    bytes_denied_ = bytes_denied_ || process->bytes_denied;
    sums.rss_bytes += process->rss_bytes;
    sums.rss_anon_bytes += process->rss_anon_bytes;
  }
  shown_.cpu_ns = std::max(shown_.cpu_ns, now.cpu_ns);
  shown_.read_bytes = std::max(shown_.read_bytes, now.read_bytes);
  shown_.written_bytes = std::max(shown_.written_bytes, now.written_bytes);
  sums.used = shown_;
  sums.written_net_bytes = now.written_bytes;
  return sums;
}

}  // namespace opjoule
