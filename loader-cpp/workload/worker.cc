#include "workload/worker.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "board/clock.h"
#include "workload/generator.h"

namespace opjoule {
namespace {

constexpr size_t kLargestBatch = 16;
constexpr uint64_t kBatchBytes =
    16 * 1024;  // so that prepared values stay in the first-level cache
constexpr int64_t kLongestSleepNs = 100'000'000;  // a signal ends a wait after this at most

size_t batch_size(const WorkloadSettings& settings) {
  const uint64_t row_bytes =
      uint64_t{settings.field_lengths.maximum()} * settings.field_count + 100;
  return std::clamp<uint64_t>(kBatchBytes / row_bytes, 1, kLargestBatch);
}

// A failure after which every further operation would fail as well.
bool is_fatal(StatusCode code) {
  return code == StatusCode::kNoSpace || code == StatusCode::kIo ||
         code == StatusCode::kUnsupported || code == StatusCode::kBadInput;
}

// CRC-32 (zlib) of the key and all values, one after the other.
uint64_t digest_of(std::string_view key, const Row& row) {
  const auto add = [](uLong sum, std::string_view bytes) {
    return crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()),
                 static_cast<uInt>(bytes.size()));
  };
  uLong sum = add(0, key);
  for (size_t i = 0; i < row.field_count(); ++i) sum = add(sum, row.value(i));
  return sum;
}

}  // namespace

Worker::Worker(const WorkerTask& task)
    : task_(task),
      settings_(*task.settings),
      looks_at_reads_((settings_.data_integrity || settings_.value_digest) &&
                      task.phase == Phase::kRun),
      now_(task.start_board_ns),
      random_(settings_.seed ^ 0x77616974, task.thread),
      batch_(batch_size(settings_)) {
  has_target_ = settings_.target_per_s > 0;
  reads_are_plain_ = !has_target_ && !looks_at_reads_;
  if (!has_target_) return;
  tick_ns_ = settings_.threads * 1e9 / settings_.target_per_s;
  // Threads that tick slower than once a millisecond start apart, as in YCSB.
  const bool start_apart = tick_ns_ >= 1e6 && !settings_.exponential_arrivals;
  const double spread = start_apart ? random_.unit() * tick_ns_ : 0;
  first_tick_ns_ = task.start_board_ns + static_cast<int64_t>(spread);
}

void Worker::run() {
  while (operations_ < task_.budget && !stopped()) {
    const uint64_t left = task_.budget - operations_;
    const std::span<Operation> room(batch_.data(), std::min<uint64_t>(batch_.size(), left));
    Status status;
    const size_t count = task_.source->next(room, now_, status);
    if (!status.is_ok()) give_up(status);
    if (count == 0) break;
    run_batch(room.first(count));
    // A log with a gap would make the run worthless: it ends here.
    if (task_.log != nullptr && !task_.log->status().is_ok()) give_up(task_.log->status());
  }
  if (Status status = task_.client->flush(); !status.is_ok()) give_up(status);
  // Waiting for the end of a stream, while a JVM shuts down, is no part of the phase.
  if (!task_.source->is_stream()) now_ = board_ns();
  if (task_.log != nullptr)
    if (Status status = task_.log->flush(); !status.is_ok()) give_up(status);
  results_.retries = task_.client->retries();
}

inline Status Worker::read(const Operation& operation) {
  Status status = task_.client->read(operation.key, operation.fields, found_);
  if (status.is_ok()) [[likely]]
    bytes_ =
        operation.fields.all ? found_.value_bytes() : found_.find(operation.fields.number).size();
  return status;
}

Status Worker::perform(const Operation& operation) {
  Client& client = *task_.client;
  switch (operation.kind) {
    case OperationKind::kRead:
      return read(operation);
    case OperationKind::kUpdate:
      bytes_ = operation.values.value_bytes();
      return update(operation);
    case OperationKind::kInsert:
      bytes_ = operation.values.value_bytes();
      return client.insert(operation.key, operation.values);
    case OperationKind::kReadModifyWrite: {
      Status status = read(operation);
      if (!status.is_ok()) return status;
      bytes_ += operation.values.value_bytes();
      return update(operation);
    }
    case OperationKind::kScan:
      return scan(operation);
    case OperationKind::kRemove:
      bytes_ = 0;
      return client.remove(operation.key, settings_.blind_removes);
  }
  return {};
}

inline int64_t Worker::account(const Operation& operation, OperationKind kind, int64_t start_ns,
                               const Status& status) {
  const int64_t end_ns = now_;
  const bool ok = status.is_ok();
  if (ok) [[likely]] {
    KindResults& results = results_.by_kind[static_cast<int>(kind)];
    ++results.succeeded;
    results.bytes += bytes_;
    results.latency.add(end_ns - start_ns);
  } else {
    count_failure(operation, status);
  }
  task_.progress->operations.store(++operations_, std::memory_order_relaxed);
  if (end_ns >= task_.deadline_board_ns) [[unlikely]]
    run_out_of_time();
  const bool wrote =
      task_.log != nullptr && task_.log->add(kind, ok, start_ns, end_ns, ok ? bytes_ : 0);
  return wrote ? board_ns() : end_ns;
}

void Worker::run_batch(std::span<Operation> batch) {
  int64_t start_ns = board_ns();
  for (Operation& operation : batch) {
    const bool is_plain = operation.kind == OperationKind::kRead && reads_are_plain_;
    if (is_plain && !stopped()) [[likely]]
      start_ns = plain_read(operation, start_ns);
    else
      start_ns = step(operation, start_ns);
  }
}

inline int64_t Worker::plain_read(const Operation& operation, int64_t start_ns) {
  const Status status = read(operation);
  now_ = board_ns();
  return account(operation, OperationKind::kRead, start_ns, status);
}

int64_t Worker::step(Operation& operation, int64_t start_ns) {
  if (has_target_) [[unlikely]]
    start_ns = wait_for_tick();
  // A load finishes its batch, so that no key numbers are missing in the database.
  if (stopped() && task_.phase == Phase::kRun) [[unlikely]] {
    task_.source->done(operation);
    return start_ns;
  }
  Status status = perform(operation);
  if (!status.is_ok() && task_.phase == Phase::kLoad) [[unlikely]]
    start_ns = retry_insert(operation, start_ns, status);
  now_ = board_ns();
  if (operation.kind == OperationKind::kInsert) task_.source->done(operation);
  const bool looks = looks_at_reads_ && status.is_ok();
  if (looks) [[unlikely]]
    status = look_at_read(operation);
  if (has_target_ && settings_.intended_latency && status.is_ok()) [[unlikely]]
    results_.by_kind[static_cast<int>(operation.kind)].intended_latency.add(now_ - intended_ns_);
  const int64_t next_ns = account(operation, operation.kind, start_ns, status);
  const bool puts_back =
      settings_.put_back && operation.kind == OperationKind::kRemove && status.is_ok();
  if (puts_back) [[unlikely]]
    put_back(operation);
  return looks || puts_back ? board_ns() : next_ns;
}

// Neither timed nor counted: the next removal is to find as many rows as this one did.
void Worker::put_back(Operation& operation) {
  const Status status = task_.client->insert(operation.key, operation.values);
  operation.kind = OperationKind::kInsert;
  if (!status.is_ok()) count_failure(operation, status);
}

void Worker::run_out_of_time() {
  out_of_time_ = operations_ < task_.budget;
  task_.stop->store(true, std::memory_order_relaxed);
}

Status Worker::update(const Operation& operation) {
  return task_.client->update(operation.key, operation.values,
                              operation.whole && settings_.blind_updates);
}

Status Worker::scan(const Operation& operation) {
  bytes_ = 0;
  return task_.client->scan(operation.key, operation.scan_length, operation.fields,
                            [&](std::string_view, const Row& row) {
                              bytes_ += operation.fields.all
                                            ? row.value_bytes()
                                            : row.find(operation.fields.number).size();
                            });
}

int64_t Worker::retry_insert(const Operation& operation, int64_t start_ns, Status& status) {
  for (uint32_t retry = 0; retry < settings_.retry_limit && !stopped(); ++retry) {
    const double wait_s = settings_.retry_interval_s * (0.8 + 0.4 * random_.unit());
    const int64_t until_ns = board_ns() + static_cast<int64_t>(wait_s * 1e9);
    while (board_ns() < until_ns && !stopped())
      sleep_until(std::min(until_ns, board_ns() + kLongestSleepNs));
    ++results_.insert_retries;
    start_ns = board_ns();
    status = task_.client->insert(operation.key, operation.values);
    if (status.is_ok()) break;
  }
  return start_ns;
}

void Worker::count_failure(const Operation& operation, const Status& status) {
  KindResults& kind = results_.by_kind[static_cast<int>(operation.kind)];
  ++(status.is_not_found() ? kind.not_found : kind.failed);
  ++results_.failures[status.code()];
  if (results_.first_failure.is_ok())
    results_.first_failure = {
        status.code(), std::string(kind_name(operation.kind)) + " of " + operation.key + ": " +
                           (status.is_not_found() ? "no such key" : status.message())};
  const bool load_ends = task_.phase == Phase::kLoad && !settings_.keep_going;
  if (load_ends || is_fatal(status.code())) task_.stop->store(true, std::memory_order_relaxed);
}

Status Worker::look_at_read(const Operation& operation) {
  if (operation.kind != OperationKind::kRead && operation.kind != OperationKind::kReadModifyWrite)
    return Status::ok();
  if (settings_.value_digest) results_.value_digest += digest_of(operation.key, found_);
  if (!settings_.data_integrity) return Status::ok();
  return verify_values(settings_, operation.key, operation.fields, found_);
}

int64_t Worker::next_tick_ns() {
  if (!settings_.exponential_arrivals)
    return first_tick_ns_ + static_cast<int64_t>(static_cast<double>(operations_) * tick_ns_);
  gaps_ns_ -= tick_ns_ * std::log1p(-random_.unit());
  return first_tick_ns_ + static_cast<int64_t>(gaps_ns_);
}

int64_t Worker::wait_for_tick() {
  const int64_t tick_ns = next_tick_ns();
  const int64_t until_ns = std::min(tick_ns, task_.deadline_board_ns);
  int64_t now_ns = board_ns();
  while (now_ns < until_ns && !stopped()) {
    if (!settings_.spin_sleep) sleep_until(std::min(until_ns, now_ns + kLongestSleepNs));
    now_ns = board_ns();
  }
  if (now_ns >= task_.deadline_board_ns) run_out_of_time();
  // What a load does before its tick, to finish a batch, is due at once.
  intended_ns_ = std::min(tick_ns, now_ns);
  return now_ns;
}

void Worker::give_up(const Status& status) {
  if (results_.fatal.is_ok()) results_.fatal = status;
  task_.stop->store(true, std::memory_order_relaxed);
}

}  // namespace opjoule
