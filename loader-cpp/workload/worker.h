// One thread of a phase: takes operations from its source, does them on its client, times, counts
// and logs them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "loader/database.h"
#include "loader/random.h"
#include "oplog/operation_log.h"
#include "workload/results.h"
#include "workload/settings.h"
#include "workload/source.h"

namespace opjoule {

// Operations done so far by one thread. Thread safety: written by its worker, read by any thread.
struct alignas(64) Progress {
  std::atomic<uint64_t> operations{0};
};

struct WorkerTask {
  const WorkloadSettings* settings = nullptr;
  Phase phase = Phase::kRun;
  uint32_t thread = 0;
  uint64_t budget = 0;  // operations; UINT64_MAX for no limit
  OperationSource* source = nullptr;
  Client* client = nullptr;
  OperationLogWriter* log = nullptr;  // may be null
  Progress* progress = nullptr;
  std::atomic<bool>* stop = nullptr;  // set by a signal, by a fatal failure, or by time
  int64_t start_board_ns = 0;
  int64_t deadline_board_ns = INT64_MAX;
};

// Thread safety: one worker a thread.
class Worker {
 public:
  explicit Worker(const WorkerTask& task);
  // Works until the budget is used up, the source ends, or it is stopped. Ends with the client's
  // flush.
  void run();
  [[nodiscard]] PhaseResults& results() { return results_; }
  // End of the client's flush; for a stream, end of the last operation.
  [[nodiscard]] int64_t end_board_ns() const { return now_; }
  // The deadline came while it had operations left to do.
  [[nodiscard]] bool out_of_time() const { return out_of_time_; }

 private:
  void run_batch(std::span<Operation> batch);
  // Does a read that may start at start_ns. Gives the start of the next: between two there is
  // only book-keeping, so that one reading of the clock is the end of one and the start of the
  // next. Inline, as is all that most reads come through.
  [[gnu::always_inline]] int64_t plain_read(const Operation& operation, int64_t start_ns);
  // Any other, with the wait for its tick; without it once the run is stopped.
  int64_t step(Operation& operation, int64_t start_ns);
  // After a success bytes_ is the bytes of the values read and written.
  Status perform(const Operation& operation);
  Status update(const Operation& operation);
  [[gnu::always_inline]] Status read(const Operation& operation);
  Status scan(const Operation& operation);
  // Tries a load's failed insert again as core_workload_insertion_retry_* say. Gives the start of
  // the last try: the pause before it is no part of the operation.
  [[gnu::cold]] int64_t retry_insert(const Operation& operation, int64_t start_ns, Status& status);
  // Counts, times and logs an operation that ended at now_. Gives the start of the next.
  [[gnu::always_inline]] int64_t account(const Operation& operation, OperationKind kind,
                                         int64_t start_ns, const Status& status);
  [[gnu::cold]] void count_failure(const Operation& operation, const Status& status);
  // Digest and check of what was read. Gives kCorrupt if these are not the values that were
  // written.
  Status look_at_read(const Operation& operation);
  [[gnu::cold]] void put_back(Operation& operation);
  // The moment at which the target rate wants the next operation to begin.
  int64_t next_tick_ns();
  // Waits for the operation's tick, a stop, or the deadline, which is a stop. Gives the time then.
  int64_t wait_for_tick();
  [[gnu::cold]] void run_out_of_time();
  [[nodiscard]] bool stopped() const { return task_.stop->load(std::memory_order_relaxed); }
  void give_up(const Status& status);

  WorkerTask task_;
  const WorkloadSettings& settings_;
  bool looks_at_reads_;
  bool has_target_ = false;
  bool reads_are_plain_ = true;  // neither has_target_ nor looks_at_reads_
  double tick_ns_ = 0;
  int64_t first_tick_ns_ = 0;
  double gaps_ns_ = 0;  // sum of the exponential gaps so far
  int64_t intended_ns_ = 0;
  int64_t now_;  // end of the last operation
  bool out_of_time_ = false;
  uint64_t operations_ = 0;
  uint64_t bytes_ = 0;  // of the present operation
  Random random_;       // for waits alone
  std::vector<Operation> batch_;
  Row found_;
  PhaseResults results_;
};

}  // namespace opjoule
