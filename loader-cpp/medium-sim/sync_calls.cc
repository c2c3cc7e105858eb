#include "medium-sim/sync_calls.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "board/clock.h"

namespace opjoule {
namespace {

constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kAskAboveBytes = 64 * 1024;
constexpr unsigned kWaits = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;

}  // namespace

bool SyncCalls::receive(Programs* programs) {
  seccomp_notif call;
  if (!programs->listener.receive(&call)) return false;
  arrived_ns_ = board_ns() - programs->half_round_trip_ns;
  programs->newest = call.id;
  guardian_->note_newest(programs->place, call.id);
  if (programs->unanswered.empty()) guardian_->note_oldest(programs->place, call.id);
  programs->unanswered.insert(call.id);
  caller_ = static_cast<pid_t>(call.pid);
  dispatch(programs, call);
  return true;
}

void SyncCalls::dispatch(Programs* programs, const seccomp_notif& call) {
  TrappedCall asked = trapped_call(call.data);
  const auto tid = static_cast<pid_t>(call.pid);
  FileRange range;
  switch (asked.call) {
    case Call::kOpenHow:
      if (!read_how(tid, &asked) || (asked.flags & (O_DSYNC | O_DIRECT)) == 0)
        return let_run(programs, call.id);
      return open_through(programs, call, asked);
    case Call::kOpen:
      return open_through(programs, call, asked);
    case Call::kWrite:
    case Call::kWritev:
      return write_through(programs, call, asked);
    case Call::kSync:
      range.what = RealSync::kEverything;
      return sync_range(programs, call.id, std::move(range), true, End::kReturn);
    case Call::kMsync: {
      MappedFile mapped = mapped_file(tid, asked.address, asked.length);
      range = {RealSync::kFile, std::move(mapped.file), mapped.offset, asked.length};
      // The kernel finds the error, or sorts out several mappings.
      const bool known =
          range.file.valid() && asked.flags == 4 && asked.length > 0 && asked.address % 4096 == 0;
      if (!range.file.valid()) return let_run(programs, call.id);
      return sync_range(programs, call.id, std::move(range), true,
                        known ? End::kReturn : End::kLetRun);
    }
    case Call::kSyncfs:
      range.what = RealSync::kFileSystem;
      break;
    case Call::kSyncFileRange:
      range.offset = asked.offset;
      range.length = asked.length;
      break;
    case Call::kFsync:
      break;
  }
  range.file = copy_descriptor(tid, asked.fd);
  if (!range.file.valid()) {
    if (errno == EBADF) return fail(programs, call.id, EBADF);
    return let_run(programs, call.id);
  }
  if (!programs->listener.valid(call.id)) return answered(programs, call.id);  // of another by now
  if (asked.call == Call::kSyncFileRange && (asked.flags & kWaits) == 0) {
    count_dirty_(arrived_ns_, caller_);
    queue_->begin_write_back(arrived_ns_, bytes_to_sync(range));
    return let_run(programs, call.id);
  }
  sync_range(programs, call.id, std::move(range), asked.call != Call::kSyncFileRange, End::kReturn);
}

void SyncCalls::let_run(Programs* programs, uint64_t id) {
  programs->listener.let_run(id);
  answered(programs, id);
}

void SyncCalls::fail(Programs* programs, uint64_t id, int error_number) {
  programs->listener.answer(id, 0, error_number);
  answered(programs, id);
}

void SyncCalls::open_through(Programs* programs, const seccomp_notif& call,
                             const TrappedCall& asked) {
  const auto tid = static_cast<pid_t>(call.pid);
  if ((asked.flags & O_ACCMODE) == O_RDONLY) return let_run(programs, call.id);
  const Descriptor file = open_for(tid, asked);
  if (!file.valid()) {
    const int error_number = errno;
    // Where this program may not look, the other's own call still may.
    if (error_number == EACCES || error_number == EPERM) return let_run(programs, call.id);
    return fail(programs, call.id, error_number);
  }
  struct stat about{};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
    return let_run(programs, call.id);
  for (int number = programs->synced.end - 1; number >= programs->synced.first; --number) {
    if (!descriptor_is_free(tid, number)) continue;
    if (!programs->listener.answer_descriptor(call.id, file.get(), number,
                                              (asked.flags & O_CLOEXEC) != 0))
      break;
    flushed_[{about.st_dev, about.st_ino}] = (asked.flags & O_DSYNC) != 0;
    return answered(programs, call.id);
  }
  let_run(programs, call.id);  // no number is left: the program's own file, synced by the kernel
}

void SyncCalls::write_through(Programs* programs, const seccomp_notif& call,
                              const TrappedCall& asked) {
  const auto tid = static_cast<pid_t>(call.pid);
  FileRange range;
  range.file = copy_descriptor(tid, asked.fd);
  struct stat about{};
  if (!range.file.valid() || ::fstat(range.file.get(), &about) != 0)
    return let_run(programs, call.id);
  const auto opened = flushed_.find({about.st_dev, about.st_ino});
  if (asked.flags == 0 && opened == flushed_.end())
    return let_run(programs, call.id);  // another file that has this number
  const bool flush = asked.flags != 0 || opened->second;
  uint64_t bytes = asked.length;
  if (asked.call == Call::kWritev) bytes = vectors_bytes(tid, asked.address, asked.length);
  const SyncTicket ticket = queue_->write_through(arrived_ns_, bytes, flush);
  written_through_ += bytes;
  wait_for(programs, call.id, std::move(range), ticket, End::kLetRun);
}

void SyncCalls::sync_range(Programs* programs, uint64_t id, FileRange range, bool flush, End end) {
  count_dirty_(arrived_ns_, caller_);
  const SyncTicket ticket = queue_->sync(arrived_ns_, bytes_to_sync(range), flush);
  wait_for(programs, id, std::move(range), ticket, end);
}

uint64_t SyncCalls::bytes_to_sync(const FileRange& range) const {
  if (range.what != RealSync::kFile) return kEverything;
  // Asking takes the kernel longer the more of the file is cached; little is synced as a whole.
  if (queue_->dirty_bytes() <= kAskAboveBytes) return kEverything;
  return dirty_bytes_of(range.file.get(), range.offset, range.length, kEverything);
}

void SyncCalls::wait_for(Programs* programs, uint64_t id, FileRange range, SyncTicket ticket,
                         End end) {
  pending_.emplace(ticket, Pending{programs, id, end, ticket, arrived_ns_});
  real_.submit({ticket, range.what, std::move(range.file), range.offset, range.length});
}

void SyncCalls::answer_due(int64_t now_ns) {
  queue_->advance(now_ns);
  for (const RealSyncs::Result& result : real_.take()) {
    const auto at = pending_.find(result.key);
    if (at == pending_.end()) continue;
    at->second.real_done = true;
    at->second.real_end_ns = result.end_ns;
    at->second.error_number = result.error_number;
    if (at->second.model_done) finish(at);
  }
  const auto model_done = [&](SyncTicket ticket, int64_t end_ns) {
    const auto at = pending_.find(ticket);
    if (at == pending_.end() || at->second.model_done) return;
    // Answered so much earlier that the program sees the answer when the medium is done.
    if (end_ns - at->second.programs->half_round_trip_ns > now_ns) return;
    at->second.model_done = true;
    at->second.model_end_ns = end_ns;
    if (at->second.real_done) finish(at);
  };
  for (const SyncTicket ticket : queue_->take_done()) model_done(ticket, now_ns);
  if (const std::optional<int64_t> end_ns = queue_->certain_end_ns())
    for (const SyncTicket ticket : queue_->certain(*end_ns)) model_done(ticket, *end_ns);
}

std::optional<int64_t> SyncCalls::next_due_ns() const {
  const std::optional<int64_t> end_ns = queue_->certain_end_ns();
  if (!end_ns) return pending_.empty() ? std::nullopt : queue_->service_end_ns();
  std::optional<int64_t> due_ns;
  for (const SyncTicket ticket : queue_->certain(*end_ns)) {
    const auto at = pending_.find(ticket);
    if (at == pending_.end() || at->second.model_done) continue;
    const int64_t its_ns = *end_ns - at->second.programs->half_round_trip_ns;
    due_ns = std::min(due_ns.value_or(its_ns), its_ns);
  }
  return due_ns;
}

void SyncCalls::answered(Programs* programs, uint64_t id) {
  programs->unanswered.erase(id);
  guardian_->note_oldest(programs->place, programs->unanswered.empty()
                                              ? programs->newest + 1
                                              : *programs->unanswered.begin());
}

void SyncCalls::finish(std::unordered_map<SyncTicket, Pending>::iterator at) {
  const Pending pending = at->second;
  pending_.erase(at);
  ++real_disk_.syncs;
  real_disk_.model_ns += pending.model_end_ns - pending.arrived_ns;
  if (pending.real_end_ns > pending.model_end_ns) {
    ++real_disk_.slower;
    real_disk_.excess_ns += pending.real_end_ns - pending.model_end_ns;
  }
  if (pending.end == End::kLetRun) return let_run(pending.programs, pending.id);
  pending.programs->listener.answer(pending.id, 0, pending.error_number);
  answered(pending.programs, pending.id);
}

void SyncCalls::forget(const Programs* programs) {
  std::erase_if(pending_, [&](const auto& item) { return item.second.programs == programs; });
}

void SyncCalls::release_all() {
  for (const auto& [ticket, pending] : pending_) pending.programs->listener.let_run(pending.id);
  pending_.clear();
}

}  // namespace opjoule
