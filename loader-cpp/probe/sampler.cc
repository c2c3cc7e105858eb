#include "probe/sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "board/clock.h"
#include "board/output_file.h"
#include "board/write_all.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr int64_t kSignaturePeriodNs = 2'000'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

std::chrono::steady_clock::time_point steady(int64_t board_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(board_ns));
}

}  // namespace

Sampler::Sampler(SamplerSettings settings)
    : settings_(std::move(settings)), board_(settings_.storage, settings_.kernel_files) {
  if (settings_.live != nullptr) settings_.live->write(kSampleColumns);
  thread_ = std::thread([this] { sample_loop(); });
}

Sampler::~Sampler() {
  if (thread_.joinable()) stop();
}

// Reads a row into row_; gives its size.
size_t Sampler::read_row() {
  BoardCounters board = board_.read();
  const WatchedSums watched = watched_.read(board.forks);
  if (settings_.processes_alone) {
    board.cpu_busy_s = static_cast<double>(watched.used.cpu_ns) * 1e-9;
  }
  if (settings_.processes_alone && settings_.kernel_files.empty()) {
    board.device_read_bytes = static_cast<uint64_t>(watched.used.read_bytes);
    board.device_written_bytes = static_cast<uint64_t>(watched.used.written_bytes);
    board.dirty_bytes = 0;
  }
  const auto number = [](auto value) { return static_cast<unsigned long long>(value); };
  return static_cast<size_t>(std::snprintf(
      row_, sizeof row_, "%lld,%.2f,%.6f,%llu,%llu,%llu,%llu,%llu,%llu,%llu\n",
      static_cast<long long>(watched.board_ns), board.cpu_busy_s,
      static_cast<double>(watched.used.cpu_ns) * 1e-9, number(watched.used.read_bytes),
      number(watched.used.written_bytes), number(board.device_read_bytes),
      number(board.device_written_bytes), number(board.dirty_bytes), number(watched.rss_bytes),
      number(watched.rss_anon_bytes)));
}

void Sampler::write_row(size_t size) {
  if (fd_ < 0 || !status_.is_ok() || write_lines(fd_, {row_, size})) return;
  status_ = output_error("system file", path_, errno);
}

void Sampler::close_file() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status Sampler::new_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("system file " + path + ": cannot be made");
  if (!write_lines(fd, kSampleColumns)) {
    Status status = output_error("system file", path, errno);
    ::close(fd);
    ::unlink(path.c_str());
    return status;
  }
  const std::lock_guard lock(mutex_);
  const size_t size = read_row();
  write_row(size);
  close_file();
  fd_ = fd;
  path_ = path;
  status_ = Status::ok();
  write_row(size);
  next_row_ns_ = board_ns() + settings_.period_ns;
  wake_.notify_all();
  return Status::ok();
}

Status Sampler::watch(pid_t pid) {
  const std::lock_guard lock(mutex_);
  return watched_.watch(pid);
}

void Sampler::unwatch(pid_t pid) {
  const std::lock_guard lock(mutex_);
  watched_.unwatch(pid);
}

void Sampler::signature(bool playing) {
  const std::lock_guard lock(mutex_);
  watched_.count_self(playing);
  playing_ = playing;
  next_live_ns_ = 0;
  wake_.notify_all();
}

void Sampler::sample_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const int64_t now_ns = board_ns();
    const bool row_due = fd_ >= 0 && now_ns >= next_row_ns_;
    const bool live_due = settings_.live != nullptr && now_ns >= next_live_ns_;
    if (row_due || live_due) {
      const size_t size = read_row();
      if (live_due) settings_.live->write({row_, size});
      if (row_due) write_row(size);
    }
    // If the board is too busy to sample in time, rows are left out, not made up for in a burst.
    if (row_due) next_row_ns_ = std::max(next_row_ns_ + settings_.period_ns, now_ns);
    if (live_due)
      next_live_ns_ = std::max(
          next_live_ns_ + (playing_ ? kSignaturePeriodNs : settings_.live_period_ns), now_ns);
    if (row_due && settings_.after_row) {
      lock.unlock();
      settings_.after_row();
      lock.lock();
    }
    const int64_t next_ns = std::min(fd_ >= 0 ? next_row_ns_ : kNever,
                                     settings_.live != nullptr ? next_live_ns_ : kNever);
    if (stopping_) break;
    if (next_ns == kNever)
      wake_.wait(lock);
    else
      wake_.wait_until(lock, steady(next_ns));
  }
}

void Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) write_row(read_row());
  close_file();
}

Status Sampler::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool Sampler::bytes_denied() const {
  const std::lock_guard lock(mutex_);
  return watched_.bytes_denied();
}

}  // namespace opjoule
