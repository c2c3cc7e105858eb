// A simulated medium whose time the test sets: no test here waits.
#include "medium-sim/medium_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

namespace opjoule {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMs = 1'000'000;
constexpr uint64_t kMb = 1'000'000;

// 1 MB/s: a byte takes a microsecond.
MediumSettings slow_medium() {
  return {1e6, 2e6, 5 * kMs, 100 * kMb, 50 * kMb, 30 * kSecond, 5 * kSecond};
}

struct Medium {
  explicit Medium(const MediumSettings& settings = slow_medium()) : queue(settings, 0) {}

  // When a sync ends, in steps of a microsecond at most around it; -1 where it has not by `until`.
  int64_t end_of(SyncTicket ticket, int64_t until_ns) {
    while (true) {
      for (const SyncTicket done : queue.take_done()) ended.push_back(done);
      if (std::count(ended.begin(), ended.end(), ticket) > 0) return now_ns;
      const auto next = queue.service_end_ns();
      if (!next || *next > until_ns) return -1;
      now_ns = *next;
      queue.advance(now_ns);
    }
  }
  uint64_t told_bytes(int64_t until_ns, Service service = Service::kWrite) {
    uint64_t bytes = 0;
    for (const BusyStretch& stretch : queue.take_stretches(until_ns))
      if (stretch.service == service) bytes += stretch.bytes;
    return bytes;
  }

  MediumQueue queue;
  int64_t now_ns = 0;
  std::vector<SyncTicket> ended;
};

}  // namespace

TEST_CASE("a sync lasts as long as its bytes and one flush") {
  Medium medium;
  medium.queue.dirtied(0, 4096);
  const SyncTicket ticket = medium.queue.sync(0, 4096, true);
  CHECK(medium.end_of(ticket, kSecond) == 4096 * 1000 + 5 * kMs);
  CHECK(medium.queue.dirty_bytes() == 0);
  CHECK(medium.queue.in_flight_bytes() == 0);
}

TEST_CASE("a sync without a flush lasts as long as its bytes") {
  Medium medium;
  medium.queue.dirtied(0, 1000);
  CHECK(medium.end_of(medium.queue.sync(0, 1000, false), kSecond) == kMs);
}

TEST_CASE("a sync of nothing is a flush, and nothing at all without one") {
  Medium medium;
  CHECK(medium.end_of(medium.queue.sync(0, 0, true), kSecond) == 5 * kMs);
  const SyncTicket nothing = medium.queue.sync(5 * kMs, 0, false);
  CHECK(medium.queue.take_done() == std::vector<SyncTicket>{nothing});
}

TEST_CASE("a sync asks for no more than is dirty") {
  Medium medium;
  medium.queue.dirtied(0, 1000);
  CHECK(medium.end_of(medium.queue.sync(0, ~uint64_t{0}, false), kSecond) == kMs);
}

TEST_CASE("a sync of part of the dirty bytes leaves the rest dirty") {
  Medium medium;
  medium.queue.dirtied(0, 5000);
  CHECK(medium.end_of(medium.queue.sync(0, 1000, false), kSecond) == kMs);
  CHECK(medium.queue.dirty_bytes() == 4000);
}

TEST_CASE("syncs that arrive during a flush share the next one") {
  Medium medium;
  const SyncTicket first = medium.queue.sync(0, 0, true);
  const SyncTicket second = medium.queue.sync(1 * kMs, 0, true);
  const SyncTicket third = medium.queue.sync(2 * kMs, 0, true);
  CHECK(medium.end_of(first, kSecond) == 5 * kMs);
  CHECK(medium.end_of(second, kSecond) == 10 * kMs);
  CHECK(medium.end_of(third, kSecond) == 10 * kMs);
  CHECK(medium.queue.completed().requests[static_cast<size_t>(Service::kFlush)] == 2);
}

TEST_CASE("small syncs that wait are served before the next flush and share it") {
  Medium medium;
  medium.queue.dirtied(0, 3000);
  const SyncTicket first = medium.queue.sync(0, 1000, true);
  const SyncTicket second = medium.queue.sync(kMs / 2, 1000, true);
  const SyncTicket third = medium.queue.sync(kMs / 2, 1000, true);
  CHECK(medium.end_of(third, kSecond) == 3 * kMs + 5 * kMs);
  CHECK(medium.ended == std::vector<SyncTicket>{first, second, third});
}

TEST_CASE("a flush does not wait for a large sync") {
  Medium medium;
  medium.queue.dirtied(0, 5 * kMb);
  const SyncTicket small = medium.queue.sync(0, 1000, true);
  medium.queue.sync(0, 4 * kMb, true);
  CHECK(medium.end_of(small, kSecond) == kMs + 5 * kMs);
}

TEST_CASE("a sync waits for one chunk of write-back, not for all of it") {
  MediumSettings settings = slow_medium();
  settings.dirty_background_bytes = 0;
  Medium medium(settings);
  medium.queue.dirtied(0, 10 * kMb);  // ten seconds of write-back
  const SyncTicket ticket = medium.queue.sync(kMs, 1000, true);
  const int64_t chunk_ns = static_cast<int64_t>(MediumQueue::kChunkBytes) * 1000;
  // The chunk in service, its bytes, the flush.
  CHECK(medium.end_of(ticket, kSecond * 20) == chunk_ns + kMs + 5 * kMs);
}

TEST_CASE("syncs without a pause do not hold up write-back") {
  MediumSettings settings = slow_medium();
  settings.dirty_background_bytes = 0;
  Medium medium(settings);
  medium.queue.dirtied(0, 2 * kMb);
  for (int64_t at_ns = 0; at_ns < 5 * kSecond; at_ns += kMs) medium.queue.sync(at_ns, 0, true);
  CHECK(medium.queue.dirty_bytes() + medium.queue.in_flight_bytes() == 0);
}

TEST_CASE("a small sync does not wait for the end of a large one") {
  Medium medium;
  medium.queue.dirtied(0, 20 * kMb);
  const SyncTicket large = medium.queue.sync(0, 10 * kMb, true);
  const SyncTicket small = medium.queue.sync(kMs, 1000, false);
  const int64_t chunk_ns = static_cast<int64_t>(MediumQueue::kChunkBytes) * 1000;
  CHECK(medium.end_of(small, kSecond * 2) == chunk_ns + kMs);
  CHECK(medium.end_of(large, kSecond * 20) == 10 * kSecond + kMs + 5 * kMs);
}

TEST_CASE("a sync at a very low rate lasts as long as it must") {
  MediumSettings settings = slow_medium();
  settings.write_bytes_per_s = 10;
  Medium medium(settings);
  medium.queue.dirtied(0, 4096);
  const SyncTicket ticket = medium.queue.sync(0, 4096, true);
  CHECK(medium.end_of(ticket, 300 * kSecond) == -1);
  CHECK(medium.end_of(ticket, 500 * kSecond) == 4096 * kSecond / 10 + 5 * kMs);
}

TEST_CASE("write-back begins above the background limit and ends at it") {
  Medium medium;
  medium.queue.dirtied(0, 50 * kMb);
  CHECK_FALSE(medium.queue.service_end_ns());
  medium.queue.dirtied(0, 2 * kMb);
  medium.queue.advance(4 * kSecond);
  CHECK_FALSE(medium.queue.service_end_ns());
  CHECK(medium.queue.dirty_bytes() <= 50 * kMb);
  CHECK(medium.queue.dirty_bytes() > 50 * kMb - MediumQueue::kChunkBytes);
}

TEST_CASE("pages are written back at the first wake-up after they expired") {
  Medium medium;
  medium.queue.dirtied(1 * kSecond, 1000);
  medium.queue.advance(34 * kSecond);
  CHECK(medium.queue.dirty_bytes() == 1000);
  medium.queue.advance(36 * kSecond);
  CHECK(medium.queue.dirty_bytes() == 0);
  const std::vector<BusyStretch> told = medium.queue.take_stretches(36 * kSecond);
  REQUIRE(told.size() == 1);
  CHECK(told[0].start_ns == 35 * kSecond);
  CHECK(told[0].end_ns == 35 * kSecond + kMs);
  CHECK(told[0].bytes == 1000);
}

TEST_CASE("dirty pages of a deleted file are never written") {
  Medium medium;
  medium.queue.dirtied(0, 3000);
  medium.queue.cancelled(kSecond, 1000);
  CHECK(medium.queue.dirty_bytes() == 2000);
  CHECK(medium.end_of(medium.queue.sync(kSecond, ~uint64_t{0}, false), 2 * kSecond) ==
        kSecond + 2 * kMs);
}

TEST_CASE("cancelling more than is dirty leaves nothing dirty and what is in flight in flight") {
  Medium medium;
  medium.queue.dirtied(0, 3000);
  medium.queue.sync(0, 2000, false);
  medium.queue.cancelled(0, 50'000);
  CHECK(medium.queue.dirty_bytes() == 0);
  CHECK(medium.queue.in_flight_bytes() == 2000);
  CHECK(medium.told_bytes(kSecond) == 2000);
}

TEST_CASE("expired pages that are deleted before their turn are not written") {
  Medium medium;
  medium.queue.dirtied(0, 2 * kMb);
  medium.queue.advance(30 * kSecond);  // the first chunk is in service
  medium.queue.cancelled(30 * kSecond, 2 * kMb);
  CHECK(medium.told_bytes(60 * kSecond) == MediumQueue::kChunkBytes);
}

TEST_CASE("writers are ahead of the medium above the limit and not below it") {
  Medium medium;
  medium.queue.dirtied(0, 100 * kMb);
  CHECK_FALSE(medium.queue.above_limit());
  medium.queue.dirtied(0, 1);
  CHECK(medium.queue.above_limit());
  CHECK_FALSE(medium.queue.below_limit());
  medium.queue.advance(2 * kSecond);
  CHECK_FALSE(medium.queue.above_limit());
  CHECK(medium.queue.below_limit());
}

TEST_CASE("bytes in flight count towards the limit") {
  Medium medium;
  medium.queue.dirtied(0, 101 * kMb);
  medium.queue.sync(0, ~uint64_t{0}, true);
  CHECK(medium.queue.dirty_bytes() == 0);
  CHECK(medium.queue.above_limit());
}

TEST_CASE("a written-through write needs no dirty page") {
  Medium medium;
  CHECK(medium.end_of(medium.queue.write_through(0, 1000, true), kSecond) == kMs + 5 * kMs);
}

TEST_CASE("write-back that was asked for begins at once and nobody waits for it") {
  Medium medium;
  medium.queue.dirtied(0, 3000);
  medium.queue.begin_write_back(0, 2000);
  CHECK(medium.queue.dirty_bytes() == 1000);
  CHECK(medium.told_bytes(kSecond) == 2000);
  CHECK(medium.queue.take_done().empty());
}

TEST_CASE("reads are served at their own rate, before writes") {
  Medium medium;
  medium.queue.read(0, 4000);
  medium.queue.dirtied(0, 1000);
  CHECK(medium.end_of(medium.queue.sync(0, 1000, false), kSecond) == 2 * kMs + kMs);
  CHECK(medium.queue.completed().bytes[static_cast<size_t>(Service::kRead)] == 4000);
}

TEST_CASE("busy stretches are cut, contiguous, and add up to the bytes") {
  Medium medium;
  medium.queue.dirtied(0, 100'000);
  medium.queue.sync(0, 100'000, true);
  std::vector<BusyStretch> told;
  for (int64_t at_ns = 0; at_ns <= 200 * kMs; at_ns += 7 * kMs)
    for (const BusyStretch& stretch : medium.queue.take_stretches(at_ns)) told.push_back(stretch);
  uint64_t bytes = 0;
  int64_t end_ns = 0;
  for (const BusyStretch& stretch : told) {
    CHECK(stretch.start_ns == end_ns);
    CHECK(stretch.end_ns - stretch.start_ns <= MediumQueue::kStretchNs);
    end_ns = stretch.end_ns;
    bytes += stretch.bytes;
  }
  CHECK(bytes == 100'000);
  CHECK(end_ns == 105 * kMs);
}

TEST_CASE("a look after a long time tells every stretch in pieces") {
  Medium medium;
  medium.queue.dirtied(0, kMb);
  medium.queue.sync(0, kMb, false);
  const std::vector<BusyStretch> told = medium.queue.take_stretches(100 * kSecond);
  CHECK(told.size() >= 100);
  CHECK(told.back().end_ns == kSecond);
}

TEST_CASE("a time before an earlier one counts as the earlier one") {
  Medium medium;
  medium.queue.advance(kSecond);
  medium.queue.dirtied(0, 1000);
  CHECK(medium.end_of(medium.queue.sync(0, 1000, false), 2 * kSecond) == kSecond + kMs);
}

TEST_CASE("what ends for certain is known before it ends") {
  Medium medium;
  medium.queue.dirtied(0, 1000);
  const SyncTicket ticket = medium.queue.sync(0, 1000, true);
  CHECK_FALSE(medium.queue.certain_end_ns());  // its bytes come before its flush
  medium.queue.advance(kMs);
  REQUIRE(medium.queue.certain_end_ns());
  CHECK(*medium.queue.certain_end_ns() == 6 * kMs);
  CHECK(medium.queue.certain(6 * kMs) == std::vector<SyncTicket>{ticket});
  CHECK(medium.queue.certain(6 * kMs - 1).empty());
}

TEST_CASE("a flush that takes no time ends when it begins") {
  MediumSettings settings = slow_medium();
  settings.flush_ns = 0;
  Medium medium(settings);
  CHECK(medium.end_of(medium.queue.sync(kMs, 0, true), kSecond) >= 0);
  CHECK(medium.queue.take_stretches(kSecond).empty());
}

}  // namespace opjoule
