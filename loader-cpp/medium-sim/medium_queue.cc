#include "medium-sim/medium_queue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace opjoule {
namespace {

constexpr int64_t kAgeNs = 10'000'000;  // pages dirtied within this share an entry
constexpr double kSlackS = 0.01;        // below the limit, at the write rate

int64_t duration_ns(uint64_t bytes, double bytes_per_s) {
  return std::llround(static_cast<double>(bytes) / bytes_per_s * 1e9);
}

}  // namespace

MediumQueue::MediumQueue(const MediumSettings& settings, int64_t start_ns)
    : settings_(settings), now_ns_(start_ns), next_wakeup_ns_(start_ns + settings.wakeup_ns) {}

void MediumQueue::dirtied(int64_t now_ns, uint64_t bytes) {
  advance(now_ns);
  if (bytes == 0) return;
  if (!dirty_.empty() && now_ns_ - dirty_.back().since_ns < kAgeNs)
    dirty_.back().bytes += bytes;
  else
    dirty_.push_back({now_ns_, bytes});
  dirty_bytes_ += bytes;
  if (!serving_) start_next(now_ns_);
}

void MediumQueue::cancelled(int64_t now_ns, uint64_t bytes) {
  advance(now_ns);
  take_youngest(bytes);
}

void MediumQueue::read(int64_t now_ns, uint64_t bytes) {
  advance(now_ns);
  reads_bytes_ += bytes;
  if (!serving_) start_next(now_ns_);
}

void MediumQueue::begin_write_back(int64_t now_ns, uint64_t bytes) {
  advance(now_ns);
  const uint64_t taken = take_youngest(bytes);
  goal_bytes_ += taken;
  in_flight_bytes_ += taken;
  if (!serving_) start_next(now_ns_);
}

SyncTicket MediumQueue::sync(int64_t now_ns, uint64_t bytes, bool flush) {
  advance(now_ns);
  return add_sync(take_youngest(bytes), flush);
}

SyncTicket MediumQueue::write_through(int64_t now_ns, uint64_t bytes, bool flush) {
  advance(now_ns);
  return add_sync(bytes, flush);
}

SyncTicket MediumQueue::add_sync(uint64_t bytes, bool flush) {
  const SyncTicket ticket = ++last_ticket_;
  in_flight_bytes_ += bytes;
  if (bytes > 0)
    syncs_.push_back({ticket, bytes, flush});
  else if (flush)
    flush_waiting_.push_back(ticket);
  else
    done_.push_back(ticket);
  if (!serving_) start_next(now_ns_);
  return ticket;
}

uint64_t MediumQueue::take_youngest(uint64_t bytes) {
  const uint64_t taken = std::min(bytes, dirty_bytes_);
  for (uint64_t left = taken; left > 0;) {
    Dirty& youngest = dirty_.back();
    const uint64_t part = std::min(left, youngest.bytes);
    youngest.bytes -= part;
    left -= part;
    if (youngest.bytes == 0) dirty_.pop_back();
  }
  dirty_bytes_ -= taken;
  expired_bytes_ = std::min(expired_bytes_, dirty_bytes_);
  return taken;
}

void MediumQueue::take_oldest(uint64_t bytes) {
  dirty_bytes_ -= bytes;
  expired_bytes_ -= std::min(expired_bytes_, bytes);
  while (bytes > 0) {
    Dirty& oldest = dirty_.front();
    const uint64_t part = std::min(bytes, oldest.bytes);
    oldest.bytes -= part;
    bytes -= part;
    if (oldest.bytes == 0) dirty_.pop_front();
  }
}

void MediumQueue::advance(int64_t now_ns) {
  now_ns = std::max(now_ns, now_ns_);
  while (true) {
    const bool serves = serving_ && serving_->end_ns <= now_ns;
    if (next_wakeup_ns_ <= now_ns && (!serves || next_wakeup_ns_ < serving_->end_ns)) {
      wake_up(next_wakeup_ns_);
    } else if (serves) {
      const int64_t end_ns = serving_->end_ns;
      end_service();
      start_next(end_ns);
    } else {
      break;
    }
  }
  now_ns_ = now_ns;
}

void MediumQueue::wake_up(int64_t at_ns) {
  next_wakeup_ns_ += settings_.wakeup_ns;
  uint64_t expired = 0;
  for (const Dirty& dirty : dirty_) {
    if (at_ns - dirty.since_ns < settings_.expire_ns) break;
    expired += dirty.bytes;
  }
  expired_bytes_ = std::max(expired_bytes_, expired);
  if (!serving_) start_next(at_ns);
}

void MediumQueue::start_next(int64_t at_ns) {
  if (reads_bytes_ > 0) {
    const uint64_t bytes = std::min(reads_bytes_, kChunkBytes);
    reads_bytes_ -= bytes;
    return serve(Service::kRead, bytes, at_ns);
  }
  const bool foreground_first = foreground_ns_ < write_ns(kChunkBytes);
  if (foreground_first && start_foreground(at_ns)) return;
  if (start_write_back(at_ns)) return;
  if (!foreground_first) start_foreground(at_ns);
}

bool MediumQueue::start_foreground(int64_t at_ns) {
  if (const auto next = next_sync(); next != syncs_.end()) {
    Sync sync = *next;
    syncs_.erase(next);
    const uint64_t bytes = std::min(sync.bytes, kChunkBytes);
    sync.bytes -= bytes;
    serve(Service::kWrite, bytes, at_ns);
    serving_->sync = sync;
  } else if (!flush_waiting_.empty()) {
    serve(Service::kFlush, 0, at_ns);
    serving_->flushed = std::exchange(flush_waiting_, {});
  } else {
    return false;
  }
  foreground_ns_ += serving_->end_ns - serving_->start_ns;
  return true;
}

// The first; before a flush only one that had better share it.
std::deque<MediumQueue::Sync>::iterator MediumQueue::next_sync() {
  if (flush_waiting_.empty()) return syncs_.begin();
  return std::find_if(syncs_.begin(), syncs_.end(), [this](const Sync& sync) {
    return sync.flush && write_ns(sync.bytes) <= settings_.flush_ns;
  });
}

int64_t MediumQueue::write_ns(uint64_t bytes) const {
  return duration_ns(bytes, settings_.write_bytes_per_s);
}

bool MediumQueue::start_write_back(int64_t at_ns) {
  uint64_t bytes = std::min(goal_bytes_, kChunkBytes);
  if (bytes > 0) {
    goal_bytes_ -= bytes;
  } else {
    const uint64_t background = settings_.dirty_background_bytes;
    const uint64_t above = dirty_bytes_ > background ? dirty_bytes_ - background : 0;
    bytes = std::min(std::max(above, expired_bytes_), kChunkBytes);
    if (bytes == 0) return false;
    bytes = std::min(kChunkBytes, dirty_bytes_);  // whole requests
    take_oldest(bytes);
    in_flight_bytes_ += bytes;
  }
  serve(Service::kWrite, bytes, at_ns);
  foreground_ns_ = 0;
  return true;
}

void MediumQueue::serve(Service service, uint64_t bytes, int64_t at_ns) {
  int64_t lasts_ns = settings_.flush_ns;
  if (service == Service::kWrite) lasts_ns = write_ns(bytes);
  if (service == Service::kRead) lasts_ns = duration_ns(bytes, settings_.read_bytes_per_s);
  serving_ = Serving{service, bytes, at_ns, at_ns + lasts_ns, at_ns, 0, {}, {}};
}

void MediumQueue::end_service() {
  tell(serving_->end_ns);
  const size_t kind = static_cast<size_t>(serving_->service);
  ++completed_.requests[kind];
  completed_.bytes[kind] += serving_->bytes;
  completed_.busy_ns[kind] += serving_->end_ns - serving_->start_ns;
  if (serving_->service == Service::kWrite) in_flight_bytes_ -= serving_->bytes;
  done_.insert(done_.end(), serving_->flushed.begin(), serving_->flushed.end());
  if (const std::optional<Sync>& sync = serving_->sync) {
    if (sync->bytes > 0)
      syncs_.push_back(*sync);
    else if (sync->flush)
      flush_waiting_.push_back(sync->ticket);
    else
      done_.push_back(sync->ticket);
  }
  serving_.reset();
}

void MediumQueue::tell(int64_t until_ns) {
  Serving& now = *serving_;
  while (now.told_ns < until_ns) {
    const int64_t end_ns = std::min(until_ns, now.told_ns + kStretchNs);
    const double part =
        static_cast<double>(end_ns - now.start_ns) / static_cast<double>(now.end_ns - now.start_ns);
    const uint64_t bytes = end_ns == now.end_ns
                               ? now.bytes
                               : static_cast<uint64_t>(part * static_cast<double>(now.bytes));
    stretches_.push_back({now.told_ns, end_ns, now.service, bytes - now.told_bytes});
    now.told_ns = end_ns;
    now.told_bytes = bytes;
  }
}

std::vector<SyncTicket> MediumQueue::take_done() { return std::exchange(done_, {}); }

std::optional<int64_t> MediumQueue::service_end_ns() const {
  if (!serving_) return std::nullopt;
  return serving_->end_ns;
}

std::optional<int64_t> MediumQueue::certain_end_ns() const {
  if (certain(std::numeric_limits<int64_t>::max()).empty()) return std::nullopt;
  return serving_->end_ns;
}

std::vector<SyncTicket> MediumQueue::certain(int64_t until_ns) const {
  if (!serving_ || serving_->end_ns > until_ns) return {};
  if (const std::optional<Sync>& sync = serving_->sync)
    if (sync->bytes == 0 && !sync->flush) return {sync->ticket};
  return serving_->flushed;
}

std::vector<BusyStretch> MediumQueue::take_stretches(int64_t now_ns) {
  advance(now_ns);
  if (serving_) tell(now_ns_);
  return std::exchange(stretches_, {});
}

bool MediumQueue::above_limit() const {
  return dirty_bytes_ + in_flight_bytes_ > settings_.dirty_limit_bytes;
}

bool MediumQueue::near_limit(uint64_t margin_bytes) const {
  const uint64_t limit = settings_.dirty_limit_bytes;
  return dirty_bytes_ + in_flight_bytes_ > limit - std::min(margin_bytes, limit / 2);
}

bool MediumQueue::below_limit() const {
  const auto slack = static_cast<uint64_t>(settings_.write_bytes_per_s * kSlackS);
  const uint64_t limit = settings_.dirty_limit_bytes;
  return dirty_bytes_ + in_flight_bytes_ <= limit - std::min(slack, limit / 2);
}

}  // namespace opjoule
