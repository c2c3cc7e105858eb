// --progress: a JSON line on stderr twice a second.
//
// Thread safety: a thread of its own; constructed and destroyed on one thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace opjoule {

class ProgressLines {
 public:
  // total: operations expected, 0 where the phase ends by time.
  ProgressLines(std::function<uint64_t()> operations, uint64_t total);
  ~ProgressLines();

 private:
  void loop();

  std::function<uint64_t()> operations_;
  uint64_t total_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace opjoule
