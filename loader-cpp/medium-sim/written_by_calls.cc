#include "medium-sim/written_by_calls.h"

#include <algorithm>
#include <string>
#include <utility>

namespace opjoule {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr int kLooks = 100;  // of 10 ms: mappings change rarely, and reading them is slow
constexpr uint64_t kLeftOverBytes = 4 << 20;  // two of the largest folios

}  // namespace

bool maps_file_writable(std::string_view maps) {
  for (size_t begin = 0; begin < maps.size();) {
    const size_t end = std::min(maps.find('\n', begin), maps.size());
    const std::string_view line = maps.substr(begin, end - begin);
    begin = end + 1;
    const size_t path = line.find('/');
    if (path == std::string_view::npos || line.find(" rw-s ") == std::string_view::npos) continue;
    const std::string_view name = line.substr(path);
    if (!name.starts_with("/dev/") && !name.starts_with("/memfd:") && !name.starts_with("/SYSV"))
      return true;
  }
  return false;
}

WrittenByCalls::Growth WrittenByCalls::grown(const std::vector<pid_t>& pids) {
  bool changed = processes_.size() != pids.size();
  std::map<pid_t, Process> now;
  uint64_t pages_bytes = 0;
  for (const pid_t pid : pids) {
    auto known = processes_.find(pid);
    const bool is_new = known == processes_.end();
    Process process = is_new ? Process{} : std::move(known->second);
    if (is_new)
      process.io = std::make_unique<ProcFile>(("/proc/" + std::to_string(pid) + "/io").c_str());
    const std::string_view io = process.io->read();
    const uint64_t bytes = number_after(io, "wchar:");
    const uint64_t calls = number_after(io, "\nsyscw:");
    changed = changed || is_new || bytes < process.bytes;
    const uint64_t more = bytes - std::min(process.bytes, bytes);
    pages_bytes += more;
    // Writes that are no whole pages touch one page more each.
    if (more % kPageBytes != 0)
      pages_bytes += kPageBytes * (calls - std::min(process.calls, calls));
    process.bytes = bytes;
    process.calls = calls;
    now.emplace(pid, std::move(process));
  }
  processes_ = std::move(now);
  return {pages_bytes, !changed};
}

bool WrittenByCalls::maps_files(const std::vector<pid_t>& pids) {
  bool any = false;
  for (const pid_t pid : pids) {
    Process& process = processes_[pid];
    if (process.looks_left-- <= 0) {
      ProcFile maps(("/proc/" + std::to_string(pid) + "/maps").c_str());
      process.maps_files = maps_file_writable(maps.read());
      process.looks_left = kLooks;
    }
    any = any || process.maps_files;
  }
  return any;
}

uint64_t WrittenByCalls::believed(uint64_t dirtied, const Growth& by_calls,
                                  const std::vector<pid_t>& pids) {
  const uint64_t wanted = dirtied + std::exchange(left_over_, 0);
  const uint64_t most = by_calls.bytes + std::exchange(spare_, 0);
  // Calls are read a moment after the pages: the next look finds the pages of some of them.
  if (wanted <= most) spare_ = std::min(most - wanted, by_calls.bytes);
  if (wanted <= most || !by_calls.is_all || maps_files(pids)) return wanted;
  left_over_ = std::min(wanted - most, kLeftOverBytes);
  return most;
}

}  // namespace opjoule
