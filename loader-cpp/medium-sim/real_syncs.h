// The real side of sync calls: makes dirty pages of this computer clean, in threads of its own, so
// that no caller waits for another's.
//
// Files are written back with sync_file_range(2) and without a flush of the real disk: the kernel
// counts a page's next write again, and the data survives the program, though not the computer.
// Thread safety: submit() and take() belong to one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "medium-sim/program_files.h"

namespace opjoule {

enum class RealSync { kFile, kFileSystem, kEverything };

class RealSyncs {
 public:
  struct Job {
    uint64_t key = 0;
    RealSync what = RealSync::kFile;
    Descriptor file;
    uint64_t offset = 0;
    uint64_t length = 0;  // 0: to the end
  };
  struct Result {
    uint64_t key = 0;
    int error_number = 0;
    int64_t end_ns = 0;
  };

  RealSyncs();
  ~RealSyncs();
  RealSyncs(const RealSyncs&) = delete;
  RealSyncs& operator=(const RealSyncs&) = delete;

  void submit(Job job);
  // What has ended since the last call.
  std::vector<Result> take();
  // Readable when there is something to take.
  [[nodiscard]] int ready_fd() const { return ready_.get(); }

 private:
  void work();

  const Descriptor ready_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  std::vector<Result> results_;
  size_t idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace opjoule
