// The events file: background activity and sync edges as JSON lines.
//
//   {"event":"compaction","board_ns":START,"end_board_ns":END,"detail":"level 1"}
//   {"event":"sync-edge","board_ns":AT,"u_ns":STANDARD_UNCERTAINTY,"level":0|1}
//   {"event":"load-change","board_ns":AT,"u_ns":STANDARD_UNCERTAINTY,"level":0|1}
//
// Thread safety: record() and sync_edge() from any thread; they copy into a bounded queue that a
// thread of this object writes out about ten times a second.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "loader/events.h"
#include "loader/status.h"

namespace opjoule {

class EventFile : public EventSink {
 public:
  // Replaces `path`; appends where it is a FIFO. kBadInput, kIo with the path.
  static Status create(const std::string& path, std::unique_ptr<EventFile>* out);
  ~EventFile() override;

  void record(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
              std::string_view detail) override;
  // u_ns: standard uncertainty of board_ns.
  void sync_edge(int64_t edge_board_ns, double u_ns, int level);
  // A change of the load signature: level 1 from idle to busy.
  void load_change(int64_t change_board_ns, double u_ns, int level);

  // The first failure to write, which raises the stop flag.
  [[nodiscard]] Status status() const;
  // Writes what is queued and stops; gives the first failure to write. Called once.
  Status close();
  // Events lost because the queue was full.
  [[nodiscard]] uint64_t dropped() const;

 private:
  EventFile(int fd, std::string path);
  void push(std::string line);
  void write_loop();
  Status write_pending(std::unique_lock<std::mutex>& lock);

  int fd_;
  std::string path_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::string pending_;
  uint64_t dropped_ = 0;
  bool closing_ = false;
  Status status_;
  std::thread writer_;
};

}  // namespace opjoule
