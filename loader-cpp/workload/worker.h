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
  // Inline, since every operation comes through here. After a success bytes_ is the bytes of the
  // values read and written.
  [[gnu::always_inline]] Status perform(const Operation& operation);
  Status update(const Operation& operation);
  [[gnu::always_inline]] Status read(const Operation& operation);
  Status scan(const Operation& operation);
  // Tries a load's failed insert again as core_workload_insertion_retry_* say. Gives the start of
  // the last try: the pause before it is no part of the operation.
  [[gnu::cold]] int64_t retry_insert(const Operation& operation, int64_t start_ns, Status& status);
  [[gnu::always_inline]] void account(const Operation& operation, int64_t start_ns,
                                      const Status& status);
  [[gnu::cold]] void count_failure(const Operation& operation, const Status& status);
  // Digest and check of what was read. Gives kCorrupt if these are not the values that were
  // written.
  Status look_at_read(const Operation& operation);
  [[gnu::cold]] void put_back(Operation& operation);
  // Waits for the operation's tick, a stop, or the deadline, which is a stop.
  void wait_for_tick();
  [[gnu::cold]] void run_out_of_time();
  [[nodiscard]] bool stopped() const { return task_.stop->load(std::memory_order_relaxed); }
  void give_up(const Status& status);

  WorkerTask task_;
  const WorkloadSettings& settings_;
  bool looks_at_reads_;
  bool has_target_ = false;
  double tick_ns_ = 0;
  int64_t first_tick_ns_ = 0;
  int64_t intended_ns_ = 0;
  int64_t now_;
  bool out_of_time_ = false;
  bool clock_is_fresh_ = false;  // now_ is still current: only book-keeping was done since
  uint64_t operations_ = 0;
  uint64_t bytes_ = 0;  // of the present operation
  Random random_;       // for waits alone
  std::vector<Operation> batch_;
  Row found_;
  PhaseResults results_;
};

}  // namespace opjoule
