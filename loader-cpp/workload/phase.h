// A load or run phase: its threads, which start together, until the last one has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "loader/database.h"
#include "loader/status.h"
#include "oplog/operation_log.h"
#include "workload/generator.h"
#include "workload/results.h"
#include "workload/source.h"
#include "workload/worker.h"

namespace opjoule {

struct PhaseRequest {
  const WorkloadSettings* settings = nullptr;
  Phase phase = Phase::kRun;
  Database* database = nullptr;
  OperationLog* log = nullptr;  // may be null
  uint64_t operations = 0;      // all threads together; 0: no limit
  // Makes the source of one thread; called on that thread, with its client.
  std::function<std::unique_ptr<OperationSource>(uint32_t thread, Client* client)> source;
  // Called once, at the start, when every thread is ready; gives the start's board_ns.
  std::function<int64_t()> on_start;
  // Called right after the start; with several threads, while they work.
  std::function<void(int64_t start_board_ns)> on_started;
};

struct PhaseOutcome {
  PhaseResults results;
  int64_t start_board_ns = 0;
  int64_t end_board_ns = 0;  // the last client's flush included
  bool out_of_time = false;  // maxexecutiontime ended it, before its operations did
};

// Thread safety: run() from one thread; operations() from any.
class PhaseRunner {
 public:
  explicit PhaseRunner(PhaseRequest request);
  // Failures are in the outcome's results.
  PhaseOutcome run();
  // Done so far, all threads together.
  [[nodiscard]] uint64_t operations() const;

 private:
  struct Start;
  PhaseOutcome run_alone();
  void work(uint32_t thread, PhaseOutcome& outcome, const std::function<int64_t()>& begin);
  [[nodiscard]] uint64_t budget(uint32_t thread) const;

  PhaseRequest request_;
  std::vector<Progress> progress_;
};

}  // namespace opjoule
