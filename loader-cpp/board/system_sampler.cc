#include "board/system_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "board/output_file.h"
#include "board/stop_signal.h"
#include "board/write_all.h"

namespace opjoule {
namespace {

constexpr std::string_view kHeader =
    "board_ns,cpu_busy_s,process_cpu_s,process_read_bytes,process_written_bytes,device_read_bytes,"
    "device_written_bytes,dirty_bytes,rss_bytes,rss_anon_bytes,operations\n";

std::string csv_row(const SystemSample& sample) {
  char row[320];
  const int size = std::snprintf(
      row, sizeof row, "%lld,%.2f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n",
      static_cast<long long>(sample.board_ns), sample.cpu_busy_s, sample.process_cpu_s,
      static_cast<unsigned long long>(sample.process_read_bytes),
      static_cast<unsigned long long>(sample.process_written_bytes),
      static_cast<unsigned long long>(sample.device_read_bytes),
      static_cast<unsigned long long>(sample.device_written_bytes),
      static_cast<unsigned long long>(sample.dirty_bytes),
      static_cast<unsigned long long>(sample.rss_bytes),
      static_cast<unsigned long long>(sample.rss_anon_bytes),
      static_cast<unsigned long long>(sample.operations));
  return {row, static_cast<size_t>(size)};
}

}  // namespace

Status SystemSampler::start(const std::string& path, double period_s,
                            const std::string& database_path, std::function<uint64_t()> operations,
                            std::unique_ptr<SystemSampler>* out) {
  int fd = -1;
  if (Status status = open_output("system file", path, O_TRUNC, &fd); !status.is_ok())
    return status;
  if (!write_all(fd, kHeader)) {
    const Status status = output_error("system file", path);
    ::close(fd);
    return status;
  }
  out->reset(new SystemSampler(fd, path, period_s, database_path, std::move(operations)));
  return Status::ok();
}

SystemSampler::SystemSampler(int fd, std::string path, double period_s,
                             const std::string& database_path, std::function<uint64_t()> operations)
    : fd_(fd),
      path_(std::move(path)),
      period_ns_(static_cast<int64_t>(period_s * 1e9)),
      probe_(database_path),
      operations_(std::move(operations)),
      sampler_([this] { sample_loop(); }) {}

SystemSampler::~SystemSampler() {
  if (sampler_.joinable()) static_cast<void>(stop());
  ::close(fd_);
}

void SystemSampler::write_row() {
  SystemSample sample = probe_.read();
  sample.operations = operations_();
  if (reader_gone_ || !status_.is_ok() || write_all(fd_, csv_row(sample))) return;
  if (errno == EPIPE) {
    reader_gone_ = true;
    return;
  }
  Status failure = output_error("system file", path_);
  const std::lock_guard lock(mutex_);
  status_ = std::move(failure);
  stop_flag().store(true);
}

void SystemSampler::sample_loop() {
  auto next = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    write_row();
    next += std::chrono::nanoseconds(period_ns_);
    // A board too busy to sample in time loses rows; it does not send them in a burst afterwards.
    next = std::max(next, std::chrono::steady_clock::now());
    lock.lock();
    wake_.wait_until(lock, next, [this] { return stopping_; });
  }
}

Status SystemSampler::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

Status SystemSampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  sampler_.join();
  write_row();
  return status_;
}

}  // namespace opjoule
