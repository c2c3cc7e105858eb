#include "medium-sim/writers.h"

#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace opjoule {
namespace {

// The thread has ended, and may wait for being reaped: ptrace(2) then gives EPERM, as where it is
// forbidden.
bool has_ended(pid_t tid, pid_t pid) {
  const std::string path =
      "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/stat";
  ProcFile file(path.c_str());
  const std::string_view stat = file.read();
  const size_t state = stat.rfind(") ");
  return state == std::string_view::npos || stat.substr(state + 2, 1).find_first_of("ZX") == 0;
}

}  // namespace

std::vector<ThreadGrowth> ThreadAmounts::grown(const std::vector<pid_t>& pids) {
  for (auto& [tid, thread] : threads_) thread.seen = false;
  std::vector<ThreadGrowth> out;
  for (const pid_t pid : pids) {
    const std::string folder_path = "/proc/" + std::to_string(pid) + "/task";
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_path.c_str()), closedir);
    while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
      const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
      if (tid <= 0) continue;
      Thread& thread = threads_[tid];
      if (!thread.io || thread.pid != pid) {
        const std::string path = folder_path + "/" + entry->d_name + "/io";
        thread = {pid, std::make_unique<ProcFile>(path.c_str())};
      }
      thread.seen = true;
      const std::string_view io = thread.io->read();
      const uint64_t written = number_after(io, "\nwrite_bytes:");
      const uint64_t read = number_after(io, "\nread_bytes:");
      if (written > thread.written_bytes || read > thread.read_bytes)
        out.push_back({tid, pid, written - thread.written_bytes, read - thread.read_bytes});
      thread.written_bytes = written;
      thread.read_bytes = read;
    }
  }
  std::erase_if(threads_, [](const auto& item) { return !item.second.seen; });
  return out;
}

void Holds::hold(pid_t tid, pid_t pid) {
  if (traced_.count(tid) != 0 || std::count(stopped_.begin(), stopped_.end(), pid) != 0) return;
  if (::ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) == 0) {
    ::ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
    traced_.emplace(tid, Traced{});
    ++held_;
    return;
  }
  if (errno == ESRCH || has_ended(tid, pid) || !guardian_->note_stopped(pid)) return;
  ::kill(pid, SIGSTOP);
  stopped_.push_back(pid);
  ++held_;
  ++held_by_signal_;
}

void Holds::attend(pid_t tid, Traced* traced, bool* gone) {
  int status = 0;
  const pid_t told = ::waitpid(tid, &status, __WALL | WNOHANG);
  if (told < 0 || (told == tid && !WIFSTOPPED(status))) {
    *gone = true;
    return;
  }
  if (told == tid) {
    traced->stopped = true;
    // A stop that a signal of its own began; the rest are stops of ptrace's.
    traced->signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
  }
  if (!traced->stopped || !traced->releasing) return;
  *gone = ::ptrace(PTRACE_DETACH, tid, nullptr,
                   reinterpret_cast<void*>(static_cast<intptr_t>(traced->signal))) == 0 ||
          errno == ESRCH;
}

void Holds::attend() {
  for (auto at = traced_.begin(); at != traced_.end();) {
    bool gone = false;
    attend(at->first, &at->second, &gone);
    at = gone ? traced_.erase(at) : std::next(at);
  }
}

void Holds::release_all() {
  for (auto& [tid, traced] : traced_) traced.releasing = true;
  attend();
  for (const pid_t pid : stopped_) {
    ::kill(pid, SIGCONT);
    guardian_->note_continued(pid);
  }
  stopped_.clear();
}

}  // namespace opjoule
