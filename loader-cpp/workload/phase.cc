#include "workload/phase.h"

#include <algorithm>
#include <latch>
#include <thread>

#include "board/clock.h"
#include "board/stop_signal.h"

namespace opjoule {

// The gate all threads wait at until each is ready.
struct PhaseRunner::Start {
  explicit Start(uint32_t threads) : ready(threads) {}
  std::latch ready;
  std::latch go{1};
  int64_t board_ns = 0;

  int64_t await() {
    ready.count_down();
    go.wait();
    return board_ns;
  }
};

PhaseRunner::PhaseRunner(PhaseRequest request)
    : request_(std::move(request)), progress_(request_.settings->threads) {}

uint64_t PhaseRunner::operations() const {
  uint64_t sum = 0;
  for (const Progress& thread : progress_) sum += thread.operations.load(std::memory_order_relaxed);
  return sum;
}

uint64_t PhaseRunner::budget(uint32_t thread) const {
  if (request_.operations == 0) return UINT64_MAX;
  const uint64_t threads = progress_.size();
  return request_.operations / threads + (thread < request_.operations % threads ? 1 : 0);
}

// begin() is called once this thread is ready, and gives the start's board_ns.
void PhaseRunner::work(uint32_t thread, PhaseOutcome& outcome,
                       const std::function<int64_t()>& begin) {
  WorkerTask task;
  task.settings = request_.settings;
  task.phase = request_.phase;
  task.thread = thread;
  task.budget = budget(thread);
  task.progress = &progress_[thread];
  task.stop = &stop_flag();
  Status status;
  const std::unique_ptr<Client> client = request_.database->client(status);
  const std::unique_ptr<OperationSource> source = request_.source(thread, client.get());
  const int64_t start_board_ns = begin();
  outcome.end_board_ns = start_board_ns;
  if (client == nullptr) {
    outcome.results.fatal = status;
    stop_flag().store(true);
    return;
  }
  task.client = client.get();
  task.source = source.get();
  task.start_board_ns = start_board_ns;
  if (request_.settings->max_execution_s > 0)
    task.deadline_board_ns =
        start_board_ns + static_cast<int64_t>(request_.settings->max_execution_s * 1e9);
  std::unique_ptr<OperationLogWriter> log;
  if (request_.log != nullptr)
    log = std::make_unique<OperationLogWriter>(*request_.log, static_cast<uint16_t>(thread),
                                               start_board_ns);
  task.log = log.get();
  Worker worker(task);
  worker.run();
  outcome.results = std::move(worker.results());
  outcome.end_board_ns = worker.end_board_ns();
  outcome.out_of_time = worker.out_of_time();
}

// A phase with one thread starts no other, so that the process can stay single-threaded: the C
// library then takes no locks, and does not check at each system call whether the thread is to end.
PhaseOutcome PhaseRunner::run_alone() {
  PhaseOutcome outcome;
  work(0, outcome, [this, &outcome] {
    outcome.start_board_ns = request_.on_start();
    if (request_.on_started) request_.on_started(outcome.start_board_ns);
    return outcome.start_board_ns;
  });
  return outcome;
}

PhaseOutcome PhaseRunner::run() {
  const uint32_t threads = static_cast<uint32_t>(progress_.size());
  if (threads == 1) return run_alone();
  Start start(threads);
  std::vector<PhaseOutcome> outcomes(threads);
  std::vector<std::thread> workers;
  for (uint32_t thread = 0; thread < threads; ++thread)
    workers.emplace_back(
        [&, thread] { work(thread, outcomes[thread], [&start] { return start.await(); }); });
  start.ready.wait();
  start.board_ns = request_.on_start();
  start.go.count_down();
  if (request_.on_started) request_.on_started(start.board_ns);
  PhaseOutcome all;
  all.start_board_ns = all.end_board_ns = start.board_ns;
  for (uint32_t thread = 0; thread < threads; ++thread) {
    workers[thread].join();
    all.results.merge(outcomes[thread].results);
    all.end_board_ns = std::max(all.end_board_ns, outcomes[thread].end_board_ns);
    all.out_of_time = all.out_of_time || outcomes[thread].out_of_time;
  }
  return all;
}

}  // namespace opjoule
