// System samples while `probe serve` runs: CSV rows for the current file and the live feed.
//
// Thread safety: any thread; samples are taken on a thread of its own, which sleeps while no
// samples are wanted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "board/board_counters.h"
#include "board/live_feed.h"
#include "loader/status.h"
#include "processes/watched_processes.h"

namespace opjoule {

inline constexpr const char* kSampleColumns =
    "board_ns,cpu_busy_s,process_cpu_s,process_read_bytes,process_written_bytes,device_read_bytes,"
    "device_written_bytes,dirty_bytes,rss_bytes,rss_anon_bytes\n";

struct SamplerSettings {
  std::string storage;  // a folder on the device to watch; empty for none
  // The whole board is watched: its counters serve instead of those of processes.
  bool processes_alone = false;
  std::string kernel_files;  // of a simulated medium (BoardCounterFiles); empty for the kernel's
  int64_t period_ns = 100'000'000;
  LiveFeed* live = nullptr;  // outlives the sampler; may be null
  int64_t live_period_ns = 100'000'000;
  // Called on the sampler's thread after each row of the file, without its lock.
  std::function<void()> after_row;
};

class Sampler {
 public:
  explicit Sampler(SamplerSettings settings);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // From now on rows go to `path`, which must not exist yet. The row taken now is the last of the
  // former file and the first of this one. On a failure the former file goes on.
  Status new_file(const std::string& path);
  Status watch(pid_t pid);
  void unwatch(pid_t pid);
  // While the load signature is played, this process counts as watched, and the live feed gets a
  // row every 2 ms.
  void signature(bool playing);
  // Writes the last row and closes the file. Called once.
  void stop();

  // The first failure to write the current file, to which nothing is written any more.
  [[nodiscard]] Status status() const;
  [[nodiscard]] bool bytes_denied() const;

 private:
  void sample_loop();
  size_t read_row();
  void write_row(size_t size);
  void close_file();

  const SamplerSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  BoardCounterFiles board_;
  WatchedProcesses watched_;
  char row_[320];
  int fd_ = -1;
  std::string path_;
  Status status_;
  int64_t next_row_ns_ = 0;
  int64_t next_live_ns_ = 0;
  bool playing_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace opjoule
