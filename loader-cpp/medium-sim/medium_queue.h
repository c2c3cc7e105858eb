// A storage medium and the page cache in front of it, as a discrete-event model: dirty pages with
// their ages, write-back, syncs, cache flushes, and when the medium was busy.
//
// The medium serves one thing at a time, writes in chunks. Syncs come before write-back, but when
// both wait each gets half of the time. Several syncs take turns. A cache flush serves every sync
// that asked for one before it began (Linux, block/blk-flush.c: one flush at a time, later ones are
// merged into the next); a sync whose bytes take no longer than a flush is served before it and
// shares it, as commits of a journal do. Write-back begins above the background limit and goes on
// until the dirty bytes are below it, and takes whatever is older than `expire_ns` at each wake-up
// (Linux, Documentation/admin-guide/sysctl/vm.rst: dirty_background_bytes, dirty_expire_centisecs,
// dirty_writeback_centisecs).
//
// The time is given, never asked for; a time before an earlier one counts as the earlier one.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace opjoule {

struct MediumSettings {
  double write_bytes_per_s = 0;  // sequential, above 0, as read_bytes_per_s
  double read_bytes_per_s = 0;
  int64_t flush_ns = 0;  // one cache flush
  uint64_t dirty_limit_bytes = 0;
  uint64_t dirty_background_bytes = 0;
  int64_t expire_ns = 30'000'000'000;
  int64_t wakeup_ns = 5'000'000'000;
};

enum class Service { kWrite, kRead, kFlush };

// A time in which the medium was busy with one kind of thing.
struct BusyStretch {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  Service service = Service::kWrite;
  uint64_t bytes = 0;
};

// What the medium has completed since the start.
struct MediumCounters {
  uint64_t requests[3] = {};  // by Service
  uint64_t bytes[3] = {};
  int64_t busy_ns[3] = {};
};

using SyncTicket = uint64_t;

class MediumQueue {
 public:
  static constexpr uint64_t kChunkBytes = 512 * 1024;  // largest request of Linux's mmc block layer
  static constexpr int64_t kStretchNs = 10'000'000;    // longest stretch told in one piece

  MediumQueue(const MediumSettings& settings, int64_t start_ns);

  // Pages that became dirty.
  void dirtied(int64_t now_ns, uint64_t bytes);
  // Dirty pages that will never be written, as their file was deleted or cut; youngest first.
  void cancelled(int64_t now_ns, uint64_t bytes);
  // Bytes read from the medium.
  void read(int64_t now_ns, uint64_t bytes);
  // Begins to write back so many dirty bytes, youngest first, and nobody waits for them.
  void begin_write_back(int64_t now_ns, uint64_t bytes);
  // A sync of so many dirty bytes, youngest first; of all of them if there are fewer.
  SyncTicket sync(int64_t now_ns, uint64_t bytes, bool flush);
  // A sync of bytes that never were dirty pages (O_DSYNC).
  SyncTicket write_through(int64_t now_ns, uint64_t bytes, bool flush);

  // Lets the time pass.
  void advance(int64_t now_ns);
  // Syncs that have ended since the last call, in the order of their end.
  std::vector<SyncTicket> take_done();
  // Syncs that what is served now will end, if it is served by `until_ns`; nothing can hold them up
  // any more.
  [[nodiscard]] std::vector<SyncTicket> certain(int64_t until_ns) const;

  // When what is served now ends; none while idle.
  [[nodiscard]] std::optional<int64_t> service_end_ns() const;
  // When the next syncs end for certain; none if what is served now ends none.
  [[nodiscard]] std::optional<int64_t> certain_end_ns() const;

  // Busy stretches up to now, in order of time, none of them told before.
  std::vector<BusyStretch> take_stretches(int64_t now_ns);

  [[nodiscard]] uint64_t dirty_bytes() const { return dirty_bytes_; }
  // Taken out of the dirty pages and not on the medium yet.
  [[nodiscard]] uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  // Reads that wait for the medium.
  [[nodiscard]] uint64_t reads_waiting_bytes() const { return reads_bytes_; }
  [[nodiscard]] bool above_limit() const;
  // Less than `margin_bytes` (at most half of it) below the limit, or above it.
  [[nodiscard]] bool near_limit(uint64_t margin_bytes) const;
  // Far enough below the limit to let writers go on.
  [[nodiscard]] bool below_limit() const;
  [[nodiscard]] const MediumCounters& completed() const { return completed_; }

 private:
  struct Dirty {
    int64_t since_ns;
    uint64_t bytes;
  };
  struct Sync {
    SyncTicket ticket;
    uint64_t bytes;  // not served yet
    bool flush;
  };
  struct Serving {
    Service service;
    uint64_t bytes;
    int64_t start_ns;
    int64_t end_ns;
    int64_t told_ns;  // told as a stretch up to here
    uint64_t told_bytes;
    std::optional<Sync> sync;         // what is left of it after this chunk
    std::vector<SyncTicket> flushed;  // syncs that this flush ends
  };

  uint64_t take_youngest(uint64_t bytes);
  void take_oldest(uint64_t bytes);
  SyncTicket add_sync(uint64_t bytes, bool flush);
  void wake_up(int64_t at_ns);
  void start_next(int64_t at_ns);
  bool start_foreground(int64_t at_ns);
  [[nodiscard]] std::deque<Sync>::iterator next_sync();
  [[nodiscard]] int64_t write_ns(uint64_t bytes) const;
  bool start_write_back(int64_t at_ns);
  void serve(Service service, uint64_t bytes, int64_t at_ns);
  void end_service();
  void tell(int64_t until_ns);

  const MediumSettings settings_;
  int64_t now_ns_;
  int64_t next_wakeup_ns_;
  std::deque<Dirty> dirty_;  // oldest first
  uint64_t dirty_bytes_ = 0;
  uint64_t in_flight_bytes_ = 0;
  uint64_t goal_bytes_ = 0;     // of the write-back that nobody waits for; already in flight
  uint64_t expired_bytes_ = 0;  // still dirty, to be written back
  uint64_t reads_bytes_ = 0;
  std::deque<Sync> syncs_;
  std::vector<SyncTicket> flush_waiting_;
  std::optional<Serving> serving_;
  int64_t foreground_ns_ = 0;  // syncs were served since the last chunk of write-back
  SyncTicket last_ticket_ = 0;
  std::vector<SyncTicket> done_;
  std::vector<BusyStretch> stretches_;
  MediumCounters completed_;
};

}  // namespace opjoule
