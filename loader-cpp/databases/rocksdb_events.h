// Watches RocksDB's background work: flushes, compactions and stalls by a listener, syncs in its
// file system layer.
//
// Thread safety: called by RocksDB from any of its threads.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "loader/events.h"

namespace opjoule {

class RocksdbListener : public rocksdb::EventListener {
 public:
  // `events` may be null and must outlive this object.
  explicit RocksdbListener(EventSink* events) : events_(events) {}

  // How often writes were slowed down or stopped since the last call.
  uint64_t take_stalls() { return stalls_.exchange(0); }

  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo& job) override;
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& job) override;
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override;
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override;
  void OnStallConditionsChanged(const rocksdb::WriteStallInfo& stall) override;

 private:
  void begin(EventKind kind, int job);
  int64_t take_start(int job);

  EventSink* events_;
  std::mutex mutex_;
  std::map<int, int64_t> job_start_board_ns_;
  int64_t stall_start_board_ns_ = 0;  // 0: writes are not held up
  std::atomic<uint64_t> stalls_{0};
};

// RocksDB's own environment, with the syncs of its files added to `events`, which must outlive it.
std::unique_ptr<rocksdb::Env> rocksdb_timed_env(EventSink* events);

}  // namespace opjoule
