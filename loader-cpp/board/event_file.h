// The events file: background activity and sync edges as JSON lines.
//
//   {"event":"begin","board_ns":START,"detail":"compaction"}
//   {"event":"compaction","board_ns":START,"end_board_ns":END,"detail":"level 1"}
//   {"event":"sync-edge","board_ns":AT,"u_ns":STANDARD_UNCERTAINTY,"level":0|1}
//   {"event":"load-change","board_ns":AT,"u_ns":STANDARD_UNCERTAINTY,"level":0|1}
//   {"event":"phase-begin","board_ns":AT,"detail":"load"}
//
// What ends before the next writing has no `begin`.
//
// Thread safety: everything but close() from any thread. Lines are copied into a bounded queue that
// a thread of this object writes out at most ten times a second; it sleeps while there are none.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "loader/events.h"
#include "loader/status.h"

namespace opjoule {

class EventFile : public EventSink {
 public:
  // Replaces `path`; appends where it is a FIFO. kBadInput, kIo with the path.
  static Status create(const std::string& path, std::unique_ptr<EventFile>* out);
  ~EventFile() override;

  void begin(EventKind kind, int64_t start_board_ns) override;
  void add(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
           std::string_view detail) override;
  // u_ns: standard uncertainty of board_ns.
  void sync_edge(int64_t edge_board_ns, double u_ns, int level);
  // A change of the load signature: level 1 from idle to busy.
  void load_change(int64_t change_board_ns, double u_ns, int level);
  // Activities and moments with any name of [A-Za-z0-9_.-]. The calls wait for room in the queue,
  // so that nothing is lost.
  void activity(std::string_view name, int64_t start_board_ns, int64_t end_board_ns,
                std::string_view detail);
  void moment(std::string_view name, int64_t at_board_ns, std::string_view detail);

  // The first failure to write, which also raises the stop flag. The file has whole lines up to
  // there; what came later is lost.
  [[nodiscard]] Status status() const;
  // Writes what is queued, and closes the file; gives the first failure to write. Called once.
  Status close();
  // Events lost because the queue was full.
  [[nodiscard]] uint64_t dropped() const;

 private:
  EventFile(int fd, std::string path);
  // Something that has begun and not ended.
  struct Going {
    EventKind kind;
    int64_t start_board_ns;
    bool is_said;  // its `begin` is written
  };
  void push(const std::string& line);
  void push_locked(const std::string& line);
  void push_waiting(const std::string& line);
  void append_locked(const std::string& line);
  void say_begins_locked();
  void write_loop();
  void write_pending(std::unique_lock<std::mutex>& lock);

  int fd_;
  std::string path_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable room_;
  std::string pending_;
  std::vector<Going> going_;
  uint64_t dropped_ = 0;
  bool closing_ = false;
  bool full_ = false;   // somebody waits for room
  bool begun_ = false;  // something has begun since the last writing
  Status status_;
  std::thread writer_;
};

}  // namespace opjoule
