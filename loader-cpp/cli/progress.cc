#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <string>

#include "board/clock.h"
#include "board/write_all.h"

namespace opjoule {

ProgressLines::ProgressLines(std::function<uint64_t()> operations, uint64_t total)
    : operations_(std::move(operations)), total_(total), thread_([this] { loop(); }) {}

ProgressLines::~ProgressLines() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ProgressLines::loop() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(500), [this] { return stopping_; })) {
    const std::string of = total_ == 0 ? "null" : std::to_string(total_);
    write_all(STDERR_FILENO, "{\"progress\":{\"board_ns\":" + std::to_string(board_ns()) +
                                 ",\"operations\":" + std::to_string(operations_()) +
                                 ",\"of\":" + of + "}}\n");
  }
}

}  // namespace opjoule
