#include "board/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "board/output_file.h"
#include "board/stop_signal.h"
#include "board/write_all.h"

namespace opjoule {
namespace {

constexpr size_t kQueueBytes = 256 * 1024;
constexpr auto kWritePeriod = std::chrono::milliseconds(100);

const char* event_name(EventKind kind) {
  switch (kind) {
    case EventKind::kFlush:
      return "flush";
    case EventKind::kCompaction:
      return "compaction";
    case EventKind::kCheckpoint:
      return "checkpoint";
    case EventKind::kSync:
      return "sync";
    case EventKind::kStall:
      return "stall";
  }
  return "unknown";
}

// `text` between quotes; anything but printable ASCII becomes a space.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c >= ' ' && c < 127 ? c : ' ');
  }
  out.push_back('"');
  return out;
}

}  // namespace

Status EventFile::create(const std::string& path, std::unique_ptr<EventFile>* out) {
  int fd = -1;
  if (Status status = open_output("events file", path, O_TRUNC, &fd); !status.is_ok())
    return status;
  out->reset(new EventFile(fd, path));
  return Status::ok();
}

EventFile::EventFile(int fd, std::string path)
    : fd_(fd), path_(std::move(path)), writer_([this] { write_loop(); }) {}

EventFile::~EventFile() {
  if (writer_.joinable()) static_cast<void>(close());
  ::close(fd_);
}

void EventFile::record(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
                       std::string_view detail) {
  push(std::string("{\"event\":\"") + event_name(kind) + "\",\"board_ns\":" +
       std::to_string(start_board_ns) + ",\"end_board_ns\":" + std::to_string(end_board_ns) +
       ",\"detail\":" + quoted(detail) + "}\n");
}

void EventFile::sync_edge(int64_t edge_board_ns, double u_ns, int level) {
  push("{\"event\":\"sync-edge\",\"board_ns\":" + std::to_string(edge_board_ns) +
       ",\"u_ns\":" + std::to_string(std::lround(std::ceil(u_ns))) +
       ",\"level\":" + std::to_string(level) + "}\n");
}

void EventFile::load_change(int64_t change_board_ns, double u_ns, int level) {
  push("{\"event\":\"load-change\",\"board_ns\":" + std::to_string(change_board_ns) +
       ",\"u_ns\":" + std::to_string(std::lround(std::ceil(u_ns))) +
       ",\"level\":" + std::to_string(level) + "}\n");
}

void EventFile::push(std::string line) {
  const std::lock_guard lock(mutex_);
  if (pending_.size() + line.size() > kQueueBytes)
    ++dropped_;
  else
    pending_ += line;
}

void EventFile::write_loop() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    wake_.wait_for(lock, kWritePeriod);
    Status status = write_pending(lock);
    if (status.is_ok()) continue;
    status_ = std::move(status);
    stop_flag().store(true);
  }
}

Status EventFile::write_pending(std::unique_lock<std::mutex>& lock) {
  if (pending_.empty() || !status_.is_ok()) return Status::ok();
  const std::string lines = std::move(pending_);
  pending_.clear();
  lock.unlock();
  const bool written = write_all(fd_, lines);
  const int error_number = errno;
  lock.lock();
  return written ? Status::ok() : output_error("events file", path_, error_number);
}

Status EventFile::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  writer_.join();
  std::unique_lock lock(mutex_);
  Status status = write_pending(lock);
  return status_.is_ok() ? status : status_;
}

Status EventFile::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

uint64_t EventFile::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace opjoule
