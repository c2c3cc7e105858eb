#include "board/board_counters.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace opjoule {
namespace {

constexpr uint64_t kSectorBytes = 512;  // a device's stat counts these whatever it has

// Busy time of all processors from the "cpu" line of /proc/stat: everything but idle and waiting
// for input/output. Guest time is contained in user time.
double busy_s(std::string_view stat) {
  static const double kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string_view line = stat.substr(stat.empty() ? 0 : 4);
  uint64_t ticks = 0;
  for (const int column : {0, 1, 2, 5, 6, 7}) ticks += nth_number(line, column);
  return static_cast<double>(ticks) / kTicksPerSecond;
}

// "MAJOR:MINOR" of the device that `path` is on; empty where there is none.
std::string device_number(const std::string& path) {
  struct stat about{};
  if (path.empty()) return {};
  // If the path does not exist yet, its nearest folder that does is looked at.
  std::string existing = path;
  while (::stat(existing.c_str(), &about) != 0) {
    const size_t slash = existing.find_last_of('/');
    if (slash == std::string::npos) return {};
    existing = slash == 0 ? "/" : existing.substr(0, slash);
  }
  return std::to_string(major(about.st_dev)) + ":" + std::to_string(minor(about.st_dev));
}

uint64_t dirty_bytes(std::string_view memory) {
  return (number_after(memory, "Dirty:") + number_after(memory, "Writeback:")) * 1024;
}

std::string device_file(const std::string& path, const std::string& kernel_files) {
  return kernel_files.empty() ? "/sys/dev/block/" + device_number(path) + "/stat"
                              : kernel_files + "/stat";
}

std::string memory_file(const std::string& kernel_files) {
  return (kernel_files.empty() ? "/proc" : kernel_files) + "/meminfo";
}

}  // namespace

BoardCounterFiles::BoardCounterFiles(const std::string& path, const std::string& kernel_files)
    : device_(device_file(path, kernel_files).c_str()),
      memory_(memory_file(kernel_files).c_str()) {}

BoardCounters BoardCounterFiles::read() {
  BoardCounters counters;
  const std::string_view stat = stat_.read();
  counters.cpu_busy_s = busy_s(stat);
  counters.forks = number_after(stat, "\nprocesses ");
  // Reads, merged, sectors read, their ms, writes, merged, sectors written ...
  const std::string_view device = device_.read();
  counters.device_read_bytes = nth_number(device, 2) * kSectorBytes;
  counters.device_written_bytes = nth_number(device, 6) * kSectorBytes;
  counters.dirty_bytes = dirty_bytes(memory_.read());
  return counters;
}

uint64_t pending_write_bytes(const std::string& kernel_files) {
  ProcFile memory(memory_file(kernel_files).c_str());
  return dirty_bytes(memory.read());
}

}  // namespace opjoule
