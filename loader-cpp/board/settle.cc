#include "board/settle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "board/stop_signal.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr std::chrono::milliseconds kSlice{100};  // a signal ends the wait after this at most

struct WriteBack {
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  int error_number = 0;
};

}  // namespace

Status write_back(const std::string& path, double limit_s, bool* settled) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(path + ": cannot be opened to write it back");
  const auto shared = std::make_shared<WriteBack>();
  // syncfs() cannot be cancelled: the thread may outlive the wait.
  std::thread([shared, fd] {
    const int error_number = ::syncfs(fd) == 0 ? 0 : errno;
    ::close(fd);
    const std::lock_guard lock(shared->mutex);
    shared->finished = true;
    shared->error_number = error_number;
    shared->done.notify_all();
  }).detach();
  std::unique_lock lock(shared->mutex);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  const auto finished = [&] { return shared->finished; };
  do {
    const auto slice =
        std::min<std::chrono::duration<double>>(until - std::chrono::steady_clock::now(), kSlice);
    *settled = shared->done.wait_for(lock, slice, finished);
  } while (!*settled && !stop_requested() && std::chrono::steady_clock::now() < until);
  if (shared->error_number != 0)
    return system_error(path + ": writing back failed", shared->error_number);
  return Status::ok();
}

}  // namespace opjoule
