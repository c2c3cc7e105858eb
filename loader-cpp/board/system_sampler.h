// What the board is doing, sampled at a fixed period into CSV rows (docs/reference/loader.md lists
// the columns).
//
// Thread safety: started and stopped from one thread; samples on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "board/board_counters.h"
#include "board/proc_file.h"
#include "board/thread_clocks.h"
#include "loader/status.h"

namespace opjoule {

// One reading of the board's counters.
struct SystemSample {
  int64_t board_ns = 0;
  double cpu_busy_s = 0;     // all processors, since boot
  double process_cpu_s = 0;  // this process, since its start
  uint64_t process_read_bytes = 0;
  uint64_t process_written_bytes = 0;
  uint64_t device_read_bytes = 0;  // of the database's block device, since boot; 0 if it has none
  uint64_t device_written_bytes = 0;
  uint64_t dirty_bytes = 0;  // of all file systems: dirty, or being written back
  uint64_t rss_bytes = 0;
  uint64_t rss_anon_bytes = 0;
  uint64_t operations = 0;
};

// Reads the counters. Thread safety: none.
class SystemProbe {
 public:
  // database_path: any file or folder on the device to watch; empty for none.
  explicit SystemProbe(const std::string& database_path);
  SystemSample read();

 private:
  ThreadClocks threads_;
  BoardCounterFiles board_;
  ProcFile io_{"/proc/self/io"};
  ProcFile status_{"/proc/self/status"};
};

class SystemSampler {
 public:
  // operations: called for each row. kBadInput, kIo with the path.
  static Status start(const std::string& path, double period_s, const std::string& database_path,
                      std::function<uint64_t()> operations, std::unique_ptr<SystemSampler>* out);
  ~SystemSampler();
  // The first failure to write, which raises the stop flag.
  Status status();
  // Writes the last row; gives the first failure to write. A reader that went away is not a
  // failure.
  Status stop();

 private:
  SystemSampler(int fd, std::string path, double period_s, const std::string& database_path,
                std::function<uint64_t()> operations);
  void sample_loop();
  void write_row();

  int fd_;
  std::string path_;
  int64_t period_ns_;
  SystemProbe probe_;
  std::function<uint64_t()> operations_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool reader_gone_ = false;
  Status status_;
  std::thread sampler_;
};

}  // namespace opjoule
