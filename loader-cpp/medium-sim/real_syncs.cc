#include "medium-sim/real_syncs.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "board/clock.h"

namespace opjoule {
namespace {

constexpr unsigned kWaitForAll =
    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

// The error that the program's own call would have given, or 0.
int make_clean(const RealSyncs::Job& job) {
  int failed = 0;
  if (job.what == RealSync::kEverything) {
    ::sync();
  } else if (job.what == RealSync::kFileSystem) {
    failed = ::syncfs(job.file.get());
  } else {
    failed = ::sync_file_range(job.file.get(), static_cast<off64_t>(job.offset),
                               static_cast<off64_t>(job.length), kWaitForAll);
    if (failed != 0 && errno == ESPIPE) failed = ::fsync(job.file.get());  // no file: its own error
  }
  return failed == 0 ? 0 : errno;
}

}  // namespace

RealSyncs::RealSyncs() : ready_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RealSyncs::~RealSyncs() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RealSyncs::submit(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  if (jobs_.size() > idle_) threads_.emplace_back([this] { work(); });
  wake_.notify_one();
}

std::vector<RealSyncs::Result> RealSyncs::take() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = ::read(ready_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void RealSyncs::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (stopping_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const int error_number = make_clean(job);
    const Result result{job.key, error_number, board_ns()};
    job.file = Descriptor();
    lock.lock();
    results_.push_back(result);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(ready_.get(), &one, sizeof one);
  }
}

}  // namespace opjoule
