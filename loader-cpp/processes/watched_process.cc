#include "processes/watched_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "board/clock.h"

namespace opjoule {
namespace {

std::string proc_path(pid_t pid, const char* file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// What follows the name in parentheses, which may hold anything: "S 1 ...", proc_pid_stat(5).
std::string_view after_name(std::string_view stat) {
  const size_t end = stat.rfind(") ");
  return end == std::string_view::npos ? std::string_view() : stat.substr(end + 2);
}

int64_t ticks_ns(uint64_t ticks) {
  static const int64_t kTickNs = kNsPerSecond / ::sysconf(_SC_CLK_TCK);
  return static_cast<int64_t>(ticks) * kTickNs;
}

}  // namespace

pid_t parent_in_stat(std::string_view stat) {
  const std::string_view fields = after_name(stat);
  return fields.size() < 2 ? 0 : static_cast<pid_t>(nth_number(fields.substr(1), 0));
}

WatchedProcesses::Process::Process(pid_t number, pid_t watched)
    : pid(number),
      root(watched),
      stat_(proc_path(number, "stat").c_str()),
      io_(proc_path(number, "io").c_str()),
      statm_(proc_path(number, "statm").c_str()),
      tasks_(opendir(proc_path(number, "task").c_str())),
      has_clock_(clock_getcpuclockid(number, &clock_) == 0) {
  alive = read_clock() && read_files();
  before = {waited_ns, read_bytes, written_bytes};
}

bool WatchedProcesses::Process::read_clock() {
  timespec now{};
  if (!has_clock_ || clock_gettime(clock_, &now) != 0) return false;
  clock_ns = int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
  return true;
}

bool WatchedProcesses::Process::read_files() {
  const std::string_view fields = after_name(stat_.read());
  if (fields.size() < 2) return alive = false;
  const std::string_view numbers = fields.substr(1);  // from the parent's number on
  parent = static_cast<pid_t>(nth_number(numbers, 0));
  // Fields 16 and 17 of the file, of which the parent's number is field 4; field 8 may be -1.
  uint64_t waited = 0;
  std::string_view rest = numbers;
  for (int field = 4; field <= 17 && !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (field >= 16) waited += nth_number(rest, 0);
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  }
  waited_ns = ticks_ns(waited);
  read_amounts();
  return true;
}

void WatchedProcesses::Process::read_amounts() {
  errno = 0;
  const std::string_view io = io_.read();
  if (io.empty()) {
    bytes_denied = errno == EACCES || errno == EPERM || errno == EBADF || errno == 0;
  } else {
    const uint64_t cancelled = number_after(io, "cancelled_write_bytes:");
    read_bytes = static_cast<int64_t>(number_after(io, "\nread_bytes:"));
    written_bytes = static_cast<int64_t>(number_after(io, "\nwrite_bytes:") - cancelled);
  }
  static const uint64_t kPageBytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string_view statm = statm_.read();  // proc_pid_statm(5): size resident shared ...
  const uint64_t resident = nth_number(statm, 1);
  const uint64_t shared = nth_number(statm, 2);
  rss_bytes = resident * kPageBytes;
  rss_anon_bytes = (resident > shared ? resident - shared : 0) * kPageBytes;
}

void WatchedProcesses::Process::append_children(std::vector<pid_t>* out) {
  if (!tasks_) return;
  rewinddir(tasks_.get());
  while (const dirent* task = readdir(tasks_.get())) {
    if (task->d_name[0] == '.') continue;
    const std::string path = std::string(task->d_name) + "/children";
    const int fd = ::openat(dirfd(tasks_.get()), path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    std::string text;
    char part[1024];
    for (ssize_t got = 0; (got = ::read(fd, part, sizeof part)) > 0;)
      text.append(part, static_cast<size_t>(got));
    ::close(fd);
    const char* at = text.data();
    const char* end = at + text.size();
    for (pid_t child = 0;;) {
      while (at < end && *at == ' ') ++at;
      const auto parsed = std::from_chars(at, end, child);
      if (parsed.ec != std::errc()) break;
      out->push_back(child);
      at = parsed.ptr;
    }
  }
}

ProcessUsage WatchedProcesses::Process::used() const {
  return {clock_ns + waited_ns, read_bytes, written_bytes};
}

}  // namespace opjoule
