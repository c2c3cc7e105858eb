#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "board/clock.h"
#include "board/system_sampler.h"

namespace opjoule {
namespace {

constexpr uint64_t kSectorBytes = 512;  // /proc/diskstats counts these whatever the device has

// The `index`-th whole number of `text`, from 0; 0 where there are fewer.
uint64_t nth_number(std::string_view text, int index) {
  const char* at = text.data();
  const char* end = at + text.size();
  uint64_t number = 0;
  for (int i = 0; i <= index; ++i) {
    while (at < end && *at == ' ') ++at;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc()) return 0;
    at = parsed.ptr;
  }
  return number;
}

// Busy time of all processors from the "cpu" line of /proc/stat: everything but idle and waiting
// for input/output. Guest time is contained in user time.
double busy_s(std::string_view stat) {
  static const double kTicksPerSecond = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const std::string_view line = stat.substr(stat.empty() ? 0 : 4);
  uint64_t ticks = 0;
  for (const int column : {0, 1, 2, 5, 6, 7}) ticks += nth_number(line, column);
  return static_cast<double>(ticks) / kTicksPerSecond;
}

std::string device_label(const std::string& path) {
  struct stat about {};
  if (path.empty()) return {};
  // The database may not be there yet: then the folder it will be made in tells.
  std::string existing = path;
  while (::stat(existing.c_str(), &about) != 0) {
    const size_t slash = existing.find_last_of('/');
    if (slash == std::string::npos) return {};
    existing = slash == 0 ? "/" : existing.substr(0, slash);
  }
  char label[48];
  std::snprintf(label, sizeof label, "%4u %7u ", major(about.st_dev), minor(about.st_dev));
  return label;
}

}  // namespace

SystemProbe::SystemProbe(const std::string& database_path) : device_(device_label(database_path)) {}

SystemSample SystemProbe::read() {
  SystemSample sample;
  // These two belong to one moment: reading /proc takes longer than all the rest.
  sample.process_cpu_s = threads_.process_cpu_s();
  sample.board_ns = board_ns();
  sample.cpu_busy_s = busy_s(stat_.read());
  const std::string_view io = io_.read();
  const uint64_t written = number_after(io, "\nwrite_bytes:");
  const uint64_t cancelled = number_after(io, "cancelled_write_bytes:");
  sample.process_read_bytes = number_after(io, "\nread_bytes:");
  sample.process_written_bytes = written > cancelled ? written - cancelled : 0;
  const std::string_view disks = disks_.read();
  const size_t at = device_.empty() ? std::string_view::npos : disks.find(device_);
  if (at != std::string_view::npos) {
    std::string_view counters = disks.substr(at + device_.size());
    counters.remove_prefix(std::min(counters.find(' '), counters.size()));
    sample.device_read_bytes = nth_number(counters, 2) * kSectorBytes;
    sample.device_written_bytes = nth_number(counters, 6) * kSectorBytes;
  }
  const std::string_view memory = memory_.read();
  sample.dirty_bytes =
      (number_after(memory, "\nDirty:") + number_after(memory, "\nWriteback:")) * 1024;
  const std::string_view status = status_.read();
  sample.rss_bytes = number_after(status, "VmRSS:") * 1024;
  sample.rss_anon_bytes = number_after(status, "RssAnon:") * 1024;
  return sample;
}

}  // namespace opjoule
