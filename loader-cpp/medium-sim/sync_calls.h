// Trapped sync calls between their arrival and their answer: each waits for the simulated medium
// and, at the same time, for the real call that makes the same pages clean; the later one ends it.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "medium-sim/filter.h"
#include "medium-sim/guardian.h"
#include "medium-sim/listener.h"
#include "medium-sim/medium_queue.h"
#include "medium-sim/real_syncs.h"

namespace opjoule {

// Programs under one filter.
struct Programs {
  Listener listener;
  int place;  // at the guardian
  DescriptorRange synced;
  int64_t half_round_trip_ns = 0;  // of a trapped call without a wait
  std::set<uint64_t> unanswered;
  uint64_t newest = 0;
};

// How often the real disk was slower than the simulated one, and how long both took.
struct RealDisk {
  uint64_t syncs = 0;
  uint64_t slower = 0;
  int64_t model_ns = 0;   // of all syncs
  int64_t excess_ns = 0;  // beyond it, of the slower ones
};

class SyncCalls {
 public:
  // `count_dirty` brings the queue's dirty bytes up to date as of a time, for a sync of a thread.
  SyncCalls(MediumQueue* queue, Guardian* guardian, std::function<void(int64_t, pid_t)> count_dirty)
      : queue_(queue), guardian_(guardian), count_dirty_(std::move(count_dirty)) {}

  // Takes one call that waits at the listener; false where there is none.
  bool receive(Programs* programs);
  // Answers what has ended by now.
  void answer_due(int64_t now_ns);
  // When the next answer is due for certain.
  [[nodiscard]] std::optional<int64_t> next_due_ns() const;
  // All calls of these programs are forgotten; they have ended.
  void forget(const Programs* programs);
  // Lets everything run that waits, as the program ends.
  void release_all();

  // Bytes written through since the last call that the kernel will count as dirtied, too.
  uint64_t take_written_through() { return std::exchange(written_through_, 0); }
  [[nodiscard]] int ready_fd() const { return real_.ready_fd(); }
  [[nodiscard]] const RealDisk& real_disk() const { return real_disk_; }

 private:
  enum class End { kReturn, kLetRun };
  struct Pending {
    Programs* programs;
    uint64_t id;
    End end;
    SyncTicket ticket;
    int64_t arrived_ns;
    bool model_done = false;
    bool real_done = false;
    int error_number = 0;
    int64_t model_end_ns = 0;
    int64_t real_end_ns = 0;
  };
  struct FileRange {
    RealSync what = RealSync::kFile;
    Descriptor file;
    uint64_t offset = 0;
    uint64_t length = 0;
  };

  void dispatch(Programs* programs, const seccomp_notif& call);
  void let_run(Programs* programs, uint64_t id);
  void fail(Programs* programs, uint64_t id, int error_number);
  void open_through(Programs* programs, const seccomp_notif& call, const TrappedCall& asked);
  void write_through(Programs* programs, const seccomp_notif& call, const TrappedCall& asked);
  void sync_range(Programs* programs, uint64_t id, FileRange range, bool flush, End end);
  [[nodiscard]] uint64_t bytes_to_sync(const FileRange& range) const;
  void wait_for(Programs* programs, uint64_t id, FileRange range, SyncTicket ticket, End end);
  void answered(Programs* programs, uint64_t id);
  void finish(std::unordered_map<SyncTicket, Pending>::iterator at);

  MediumQueue* const queue_;
  Guardian* const guardian_;
  const std::function<void(int64_t, pid_t)> count_dirty_;
  int64_t arrived_ns_ = 0;  // of the call that is dispatched now, as its program sees it
  pid_t caller_ = 0;        // its thread
  RealSyncs real_;
  std::unordered_map<SyncTicket, Pending> pending_;
  // Device and inode of files whose writes wait for the medium -> whether for a flush, too, as the
  // last one to open it asked.
  std::map<std::pair<uint64_t, uint64_t>, bool> flushed_;
  uint64_t written_through_ = 0;
  RealDisk real_disk_;
};

}  // namespace opjoule
