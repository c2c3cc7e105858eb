#include "medium-sim/medium_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr uint64_t kSectorBytes = 512;
constexpr int64_t kNsPerMs = 1'000'000;
constexpr const char* kServices[] = {"write", "read", "flush"};

void rewrite(int fd, const std::string& text, std::string* shown) {
  if (text == *shown) return;
  *shown = text;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
}

}  // namespace

std::string stat_line(const MediumCounters& completed, bool busy) {
  constexpr auto kWrite = static_cast<size_t>(Service::kWrite);
  constexpr auto kRead = static_cast<size_t>(Service::kRead);
  constexpr auto kFlush = static_cast<size_t>(Service::kFlush);
  uint64_t ms[3];
  for (size_t i = 0; i < 3; ++i) ms[i] = static_cast<uint64_t>(completed.busy_ns[i] / kNsPerMs);
  const uint64_t all_ms = ms[kRead] + ms[kWrite] + ms[kFlush];
  const uint64_t fields[] = {completed.requests[kRead],
                             0,
                             completed.bytes[kRead] / kSectorBytes,
                             ms[kRead],
                             completed.requests[kWrite],
                             0,
                             completed.bytes[kWrite] / kSectorBytes,
                             ms[kWrite],
                             busy ? 1U : 0U,
                             all_ms,
                             all_ms,
                             0,
                             0,
                             0,
                             0,
                             completed.requests[kFlush],
                             ms[kFlush]};
  std::string line;
  char field[32];
  for (const uint64_t value : fields) {
    std::snprintf(field, sizeof field, "%14llu ", static_cast<unsigned long long>(value));
    line += field;
  }
  line.back() = '\n';
  return line;
}

std::string meminfo_lines(uint64_t dirty_bytes, uint64_t writeback_bytes) {
  char text[96];
  std::snprintf(text, sizeof text, "Dirty:     %14llu kB\nWriteback: %14llu kB\n",
                static_cast<unsigned long long>(dirty_bytes / 1024),
                static_cast<unsigned long long>(writeback_bytes / 1024));
  return text;
}

Status MediumFiles::open(const std::string& folder, const std::string& fifo,
                         std::unique_ptr<MediumFiles>* out) {
  std::unique_ptr<MediumFiles> files(new MediumFiles);
  for (const auto& [name, fd] :
       {std::pair{"/stat", &files->stat_}, std::pair{"/meminfo", &files->meminfo_}}) {
    *fd = ::open((folder + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (*fd < 0) return system_error(folder + name);
  }
  rewrite(files->stat_, stat_line({}, false), &files->shown_stat_);
  rewrite(files->meminfo_, meminfo_lines(0, 0), &files->shown_meminfo_);
  if (!fifo.empty())
    if (Status status = LiveFeed::open(fifo, &files->live_); !status.is_ok()) return status;
  *out = std::move(files);
  return Status::ok();
}

MediumFiles::~MediumFiles() {
  if (stat_ >= 0) ::close(stat_);
  if (meminfo_ >= 0) ::close(meminfo_);
}

void MediumFiles::write(int64_t now_ns, MediumQueue* queue) {
  const std::vector<BusyStretch> stretches = queue->take_stretches(now_ns);
  rewrite(stat_, stat_line(queue->completed(), queue->service_end_ns().has_value()), &shown_stat_);
  rewrite(meminfo_, meminfo_lines(queue->dirty_bytes(), queue->in_flight_bytes()), &shown_meminfo_);
  if (!live_) return;
  std::string lines;
  char line[128];
  for (const BusyStretch& stretch : stretches) {
    std::snprintf(line, sizeof line, "m %lld %lld %s %llu\n",
                  static_cast<long long>(stretch.start_ns), static_cast<long long>(stretch.end_ns),
                  kServices[static_cast<size_t>(stretch.service)],
                  static_cast<unsigned long long>(stretch.bytes));
    lines += line;
  }
  std::snprintf(line, sizeof line, "q %lld %llu\n", static_cast<long long>(now_ns),
                static_cast<unsigned long long>(queue->dirty_bytes() + queue->in_flight_bytes()));
  live_->write(lines + line);
}

}  // namespace opjoule
