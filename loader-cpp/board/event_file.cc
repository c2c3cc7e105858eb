#include "board/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

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

std::string activity_line(std::string_view name, int64_t start_board_ns, int64_t end_board_ns,
                          std::string_view detail) {
  return "{\"event\":" + quoted(name) + ",\"board_ns\":" + std::to_string(start_board_ns) +
         ",\"end_board_ns\":" + std::to_string(end_board_ns) + ",\"detail\":" + quoted(detail) +
         "}\n";
}

std::string moment_line(std::string_view name, int64_t at_board_ns, std::string_view detail) {
  return "{\"event\":" + quoted(name) + ",\"board_ns\":" + std::to_string(at_board_ns) +
         ",\"detail\":" + quoted(detail) + "}\n";
}

std::string change_line(const char* name, int64_t at_board_ns, double u_ns, int level) {
  return std::string("{\"event\":\"") + name + "\",\"board_ns\":" + std::to_string(at_board_ns) +
         ",\"u_ns\":" + std::to_string(std::lround(std::ceil(u_ns))) +
         ",\"level\":" + std::to_string(level) + "}\n";
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

void EventFile::begin(EventKind kind, int64_t start_board_ns) {
  const std::lock_guard lock(mutex_);
  going_.push_back({kind, start_board_ns, false});
  if (!std::exchange(begun_, true)) wake_.notify_one();
}

void EventFile::add(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
                    std::string_view detail) {
  const std::string line = activity_line(event_name(kind), start_board_ns, end_board_ns, detail);
  const std::lock_guard lock(mutex_);
  const auto begun = std::find_if(going_.begin(), going_.end(), [&](const Going& one) {
    return one.kind == kind && one.start_board_ns == start_board_ns;
  });
  if (begun != going_.end()) going_.erase(begun);
  push_locked(line);
}

// A reader that follows the file learns in time of what lasts; of the many short syncs of a durable
// engine it gets one line each.
void EventFile::say_begins_locked() {
  begun_ = false;
  for (Going& one : going_)
    if (!std::exchange(one.is_said, true))
      pending_ += moment_line("begin", one.start_board_ns, event_name(one.kind));
}

void EventFile::sync_edge(int64_t edge_board_ns, double u_ns, int level) {
  push(change_line("sync-edge", edge_board_ns, u_ns, level));
}

void EventFile::load_change(int64_t change_board_ns, double u_ns, int level) {
  push(change_line("load-change", change_board_ns, u_ns, level));
}

void EventFile::activity(std::string_view name, int64_t start_board_ns, int64_t end_board_ns,
                         std::string_view detail) {
  push_waiting(activity_line(name, start_board_ns, end_board_ns, detail));
}

void EventFile::moment(std::string_view name, int64_t at_board_ns, std::string_view detail) {
  push_waiting(moment_line(name, at_board_ns, detail));
}

void EventFile::append_locked(const std::string& line) {
  if (pending_.empty()) wake_.notify_one();
  pending_ += line;
}

void EventFile::push(const std::string& line) {
  const std::lock_guard lock(mutex_);
  push_locked(line);
}

void EventFile::push_locked(const std::string& line) {
  if (pending_.size() + line.size() > kQueueBytes)
    ++dropped_;
  else
    append_locked(line);
}

void EventFile::push_waiting(const std::string& line) {
  std::unique_lock lock(mutex_);
  const auto has_room = [&] { return pending_.size() + line.size() <= kQueueBytes; };
  if (!has_room()) {
    full_ = true;
    wake_.notify_one();
    room_.wait(lock, has_room);
  }
  append_locked(line);
}

void EventFile::write_loop() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    wake_.wait(lock, [this] { return closing_ || begun_ || !pending_.empty(); });
    wake_.wait_for(lock, kWritePeriod, [this] { return closing_ || full_; });
    write_pending(lock);
  }
}

void EventFile::write_pending(std::unique_lock<std::mutex>& lock) {
  say_begins_locked();
  const std::string lines = std::exchange(pending_, {});
  full_ = false;
  room_.notify_all();
  if (lines.empty()) return;
  if (!status_.is_ok()) {
    dropped_ += static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
    return;
  }
  lock.unlock();
  const bool written = write_lines(fd_, lines);
  const int error_number = errno;
  lock.lock();
  if (written) return;
  status_ = output_error("events file", path_, error_number);
  stop_flag().store(true);
}

Status EventFile::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  writer_.join();
  std::unique_lock lock(mutex_);
  write_pending(lock);
  return status_;
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
