#include "probe/command_cgroup.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "board/clock.h"
#include "board/input_file.h"
#include "board/write_all.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;
constexpr int kRemoveTries = 100;
constexpr int64_t kRetryNs = 10'000'000;

// Where the file system of cgroup v2 is mounted: field 5 of the line of /proc/self/mountinfo whose
// type, the one after " - ", is cgroup2; empty where there is none.
std::string mount_point() {
  std::string text;
  if (!read_input("", "/proc/self/mountinfo", kFileBytesMax, &text).is_ok()) return {};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" - cgroup2 ") == std::string::npos) continue;
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5; ++i) fields >> field;
    return field;
  }
  return {};
}

// This process's own group below the mount point: the line "0::/PATH" of /proc/self/cgroup.
std::string own_group() {
  std::string text;
  if (!read_input("", "/proc/self/cgroup", kFileBytesMax, &text).is_ok()) return {};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::")) return line.substr(3) == "/" ? "" : line.substr(3);
  return {};
}

bool write_value(const std::string& path, const std::string& value) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write_all(fd, value);
  if (fd >= 0) ::close(fd);
  return written;
}

}  // namespace

void CommandCgroup::make(pid_t pid) {
  const std::string mounted = mount_point();
  if (mounted.empty()) return;
  const std::string folder = mounted + own_group() + "/opjoule-" + std::to_string(pid);
  if (::mkdir(folder.c_str(), 0755) != 0) return;
  folder_ = folder;  // removed in the end, even if the command cannot be put into it
  write_value(folder_ + "/cgroup.procs", std::to_string(pid));
}

void CommandCgroup::kill() const {
  if (folder_.empty()) return;
  if (write_value(folder_ + "/cgroup.kill", "1")) return;
  // Linux before 5.14 has no such file.
  std::string text;
  if (!read_input("", folder_ + "/cgroup.procs", kFileBytesMax, &text).is_ok()) return;
  std::istringstream numbers(text);
  for (pid_t pid = 0; numbers >> pid;) ::kill(pid, SIGKILL);
}

CommandCgroup::~CommandCgroup() {
  for (int i = 0; !folder_.empty() && i < kRemoveTries; ++i) {
    kill();
    if (::rmdir(folder_.c_str()) == 0 || errno != EBUSY) return;
    sleep_until(board_ns() + kRetryNs);
  }
}

}  // namespace opjoule
