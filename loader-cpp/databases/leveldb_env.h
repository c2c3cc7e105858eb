// Watches LevelDB's background work through its environment interface: syncs of its files, flushes
// and compactions (from its log lines), write stalls (from its sleeps), and whether work is
// pending.
//
// Thread safety: as leveldb::Env, any thread.
#pragma once

#include <leveldb/env.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "loader/events.h"

namespace opjoule {

class LeveldbEnv : public leveldb::EnvWrapper {
 public:
  // `events` may be null and must outlive this object.
  explicit LeveldbEnv(EventSink* events) : EnvWrapper(Env::Default()), events_(events) {}
  // Waits: a background call may still be returning after LevelDB has closed.
  ~LeveldbEnv() override { wait_idle(60); }

  // Waits until no background call is scheduled or running. False after `limit_s`.
  bool wait_idle(double limit_s);
  // What was dropped from a damaged log at opening, in LevelDB's words; empty if nothing was. (A
  // log that ends in the middle of an entry was left by a killed writer: that is no damage.)
  [[nodiscard]] std::string lost_in_recovery() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  // Write stalls since the last call.
  uint64_t take_stalls() { return stalls_.exchange(0); }

  leveldb::Status NewWritableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& name, leveldb::WritableFile** file) override;
  leveldb::Status NewLogger(const std::string& name, leveldb::Logger** logger) override;
  void Schedule(void (*function)(void*), void* argument) override;
  void SleepForMicroseconds(int micros) override;

 private:
  friend class LeveldbLog;
  struct Work;
  static void run(void* work);
  // Gives the start, for add().
  int64_t begin(EventKind kind);
  void add(EventKind kind, int64_t start_board_ns, std::string_view detail);
  leveldb::Status observe(const std::string& name, leveldb::Status status,
                          leveldb::WritableFile** file);
  void keep_lost(const char* words);
  void begin_wait();
  void end_wait();

  EventSink* events_;
  std::atomic<uint64_t> stalls_{0};
  mutable std::mutex mutex_;
  std::string lost_;
  std::condition_variable idle_;
  int scheduled_ =
      0;  // background calls queued or running; LevelDB queues the next before one ends
};

}  // namespace opjoule
