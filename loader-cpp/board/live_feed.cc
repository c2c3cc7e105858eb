#include "board/live_feed.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "board/output_file.h"

namespace opjoule {
namespace {

constexpr size_t kPendingBytesMax = 1 << 20;

}  // namespace

Status LiveFeed::open(const std::string& path, std::unique_ptr<LiveFeed>* out) {
  int fd = -1;
  if (Status status = open_output("live feed", path, O_APPEND, &fd); !status.is_ok()) return status;
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  out->reset(new LiveFeed(fd));
  return Status::ok();
}

LiveFeed::~LiveFeed() { ::close(fd_); }

void LiveFeed::write(std::string_view line) {
  const std::lock_guard lock(mutex_);
  if (reader_gone_) return;
  if (pending_.size() + line.size() > kPendingBytesMax)
    ++left_out_;
  else
    pending_ += line;
  flush_locked();
}

void LiveFeed::flush_locked() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(fd_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      reader_gone_ = errno != EAGAIN;
      break;
    }
    done += static_cast<size_t>(written);
  }
  pending_.erase(0, done);
}

uint64_t LiveFeed::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

}  // namespace opjoule
