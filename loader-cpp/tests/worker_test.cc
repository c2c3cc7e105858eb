#include "workload/worker.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "board/clock.h"
#include "workload/generator.h"

namespace opjoule {
namespace {

// Answers as it is told to, and counts.
class FakeClient : public Client {
 public:
  Status read(std::string_view, FieldChoice, Row& out) override {
    ++reads;
    began_ns.push_back(board_ns());
    if (!answer.is_ok()) return answer;
    out.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{50});
    return Status::ok();
  }
  Status insert(std::string_view, const Row&) override {
    ++inserts;
    if (failing_inserts > 0) {
      --failing_inserts;
      return {StatusCode::kBusy, "locked"};
    }
    return answer;
  }
  Status update(std::string_view, const Row&, bool blind) override {
    ++updates;
    blind_updates += blind ? 1 : 0;
    return answer;
  }
  Status scan(std::string_view, uint64_t limit, FieldChoice, const Visitor& visit) override {
    Row row;
    row.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{50});
    for (uint64_t i = 0; i < limit; ++i) visit("key", row);
    return answer;
  }
  Status remove(std::string_view, bool blind) override {
    blind_removes += blind ? 1 : 0;
    return answer;
  }
  Status flush() override {
    ++flushes;
    return Status::ok();
  }

  Status answer;
  int failing_inserts = 0;
  int reads = 0;
  std::vector<int64_t> began_ns;  // of the reads
  int updates = 0;
  int blind_updates = 0;
  int blind_removes = 0;
  int inserts = 0;
  int flushes = 0;
};

class Bench {
 public:
  Bench(std::initializer_list<const char*> assignments, Phase phase) : phase_(phase) {
    Properties properties;
    properties.set("recordcount", "1000");
    properties.set("operationcount", "1000");
    for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
    const Status status = WorkloadSettings::from(properties, phase, 0, &settings_);
    REQUIRE_MESSAGE(status.is_ok(), status.message());
    state_ = std::make_unique<KeySpace>(settings_);
    if (phase == Phase::kLoad)
      source_ = std::make_unique<LoadGenerator>(*state_, 0);
    else
      source_ = std::make_unique<RunGenerator>(*state_, 0);
  }

  PhaseResults run(uint64_t budget, double seconds = 0) {
    WorkerTask task;
    task.settings = &settings_;
    task.phase = phase_;
    task.budget = budget;
    task.source = source_.get();
    task.client = &client;
    task.log = log;
    task.progress = &progress;
    task.stop = &stop;
    task.start_board_ns = board_ns();
    if (seconds > 0)
      task.deadline_board_ns = task.start_board_ns + static_cast<int64_t>(seconds * 1e9);
    Worker worker(task);
    worker.run();
    duration_s = static_cast<double>(worker.end_board_ns() - task.start_board_ns) * 1e-9;
    return worker.results();
  }

  FakeClient client;
  OperationLogWriter* log = nullptr;
  Progress progress;
  std::atomic<bool> stop{false};
  double duration_s = 0;

 private:
  Phase phase_;
  WorkloadSettings settings_;
  std::unique_ptr<KeySpace> state_;
  std::unique_ptr<OperationSource> source_;
};

const KindResults& of(const PhaseResults& results, OperationKind kind) {
  return results.by_kind[static_cast<int>(kind)];
}

// Reads made elsewhere; the end comes some time after the last of them.
class LateStream : public OperationSource {
 public:
  size_t next(std::span<Operation> out, int64_t, Status&) override {
    asked_board_ns = board_ns();
    if (left-- > 0) {
      out[0].kind = OperationKind::kRead;
      out[0].key = "key";
      return 1;
    }
    while (board_ns() < asked_board_ns + 1'000'000) {
    }
    return 0;
  }
  [[nodiscard]] bool is_stream() const override { return true; }

  int left = 3;
  int64_t asked_board_ns = 0;
};

TEST_CASE("a stream's phase ends with its last operation, not with the stream") {
  WorkloadSettings settings;
  LateStream stream;
  FakeClient client;
  Progress progress;
  std::atomic<bool> stop{false};
  WorkerTask task;
  task.settings = &settings;
  task.budget = UINT64_MAX;
  task.source = &stream;
  task.client = &client;
  task.progress = &progress;
  task.stop = &stop;
  task.start_board_ns = board_ns();
  Worker worker(task);
  worker.run();
  CHECK(client.reads == 3);
  CHECK(worker.end_board_ns() > task.start_board_ns);
  CHECK(worker.end_board_ns() <= stream.asked_board_ns);
}

TEST_CASE("a worker does its budget, counts it and flushes") {
  Bench bench({"readproportion=1", "updateproportion=0"}, Phase::kRun);
  const PhaseResults results = bench.run(1000);
  CHECK(bench.client.reads == 1000);
  CHECK(bench.client.flushes == 1);
  CHECK(bench.progress.operations == 1000);
  CHECK(of(results, OperationKind::kRead).succeeded == 1000);
  CHECK(of(results, OperationKind::kRead).bytes == 50'000);
  CHECK(of(results, OperationKind::kRead).latency.count() == 1000);
  CHECK(results.errors(false) == 0);
}

TEST_CASE("an update reads its record first, but for a blind one of all fields") {
  for (const auto& [updates, blind] :
       {std::pair{"updates=read-merge-write", 0}, {"updates=blind", 10}}) {
    for (const char* kind : {"updateproportion=1", "readmodifywriteproportion=1"}) {
      Bench bench({"readproportion=0", "updateproportion=0", "fieldcount=1", updates, kind},
                  Phase::kRun);
      bench.run(10);
      CHECK(bench.client.updates == 10);
      CHECK(bench.client.blind_updates == blind);
    }
  }
}

TEST_CASE("a removal looks first, but for a blind one") {
  for (const auto& [removes, blind] : {std::pair{"removes=checked", 0}, {"removes=blind", 10}}) {
    Bench bench({"readproportion=0", "updateproportion=0", "removeproportion=1", removes},
                Phase::kRun);
    bench.run(10);
    CHECK(bench.client.blind_removes == blind);
  }
}

TEST_CASE("a digest of values is told where it is asked for, and follows from what was read") {
  for (const auto& [asked, told] :
       {std::pair{"valuedigest=false", false}, {"valuedigest=true", true}}) {
    Bench bench({"readproportion=1", "updateproportion=0", asked}, Phase::kRun);
    CHECK((bench.run(100).value_digest != 0) == told);
  }
}

TEST_CASE("a read-modify-write reads, then updates, and moves the bytes of both") {
  Bench bench({"readproportion=0", "updateproportion=0", "readmodifywriteproportion=1"},
              Phase::kRun);
  const PhaseResults results = bench.run(100);
  CHECK(bench.client.reads == 100);
  CHECK(bench.client.updates == 100);
  CHECK(of(results, OperationKind::kReadModifyWrite).bytes == 100 * 150);
}

TEST_CASE("missing keys are errors unless removals make them normal") {
  Bench bench({"readproportion=1", "updateproportion=0"}, Phase::kRun);
  bench.client.answer = Status::not_found();
  const PhaseResults results = bench.run(100);
  CHECK(results.errors(false) == 100);
  CHECK(results.errors(true) == 0);
  CHECK(results.first_failure.message().find("no such key") != std::string::npos);
  CHECK(of(results, OperationKind::kRead).latency.count() == 0);
}

TEST_CASE("a full disk ends the phase, a busy engine does not") {
  Bench full({"readproportion=0", "updateproportion=1"}, Phase::kRun);
  full.client.answer = {StatusCode::kNoSpace, "no space left"};
  CHECK(full.run(1000).errors(false) < 20);
  CHECK(full.stop);
  Bench busy({"readproportion=0", "updateproportion=1"}, Phase::kRun);
  busy.client.answer = {StatusCode::kBusy, "locked"};
  CHECK(busy.run(1000).errors(false) == 1000);
}

TEST_CASE("a load ends at a failed insert, unless it is to keep going") {
  Bench ends({}, Phase::kLoad);
  ends.client.failing_inserts = 1;
  CHECK(ends.run(1000).errors(false) == 1);
  CHECK(ends.client.inserts < 20);
  Bench goes_on({"core_workload_insertion_keep_going_on_error=true"}, Phase::kLoad);
  goes_on.client.failing_inserts = 1;
  CHECK(goes_on.run(1000).errors(false) == 1);
  CHECK(goes_on.client.inserts == 1000);
}

TEST_CASE("a failed insert is tried again as often as the limit says") {
  Bench bench({"core_workload_insertion_retry_limit=3", "core_workload_insertion_retry_interval=0"},
              Phase::kLoad);
  bench.client.failing_inserts = 3;
  const PhaseResults results = bench.run(100);
  CHECK(results.errors(false) == 0);
  CHECK(results.insert_retries == 3);
  CHECK(bench.client.inserts == 103);
}

TEST_CASE("the pause before another try of an insert is no part of its latency") {
  Bench bench(
      {"core_workload_insertion_retry_limit=1", "core_workload_insertion_retry_interval=0.5"},
      Phase::kLoad);
  bench.client.failing_inserts = 1;
  const PhaseResults results = bench.run(100);
  CHECK(results.errors(false) == 0);
  CHECK(bench.duration_s >= 0.4);
  CHECK(of(results, OperationKind::kInsert).latency.maximum_ns() < 300'000'000);
}

TEST_CASE("a read of wrong values is a failure in the counts, the latencies and the bytes") {
  Bench bench({"readproportion=1", "updateproportion=0", "dataintegrity=true",
               "fieldlengthdistribution=constant"},
              Phase::kRun);
  const PhaseResults results = bench.run(100);
  const KindResults& reads = of(results, OperationKind::kRead);
  CHECK(bench.client.reads == 100);
  CHECK(reads.failed == 100);
  CHECK(reads.succeeded == 0);
  CHECK(reads.latency.count() == 0);
  CHECK(reads.bytes == 0);
}

// Stands in for a medium that takes 0.2 s for each block of the log.
class SlowReader {
 public:
  SlowReader() {
    std::string name = (std::filesystem::temp_directory_path() / "opjoule-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    REQUIRE(mkfifo(path().c_str(), 0600) == 0);
    thread_ = std::thread([this] { read_all(); });
  }
  ~SlowReader() {
    ::close(::open(path().c_str(), O_RDWR));  // a reader that still waits for a writer has one now
    thread_.join();
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] std::string path() const { return (folder_ / "log").string(); }

 private:
  void read_all() const {
    const int fd = ::open(path().c_str(), O_RDONLY);
    std::vector<char> block(OperationLog::kBlockBytes);
    while (::read(fd, block.data(), block.size()) > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    ::close(fd);
  }

  std::filesystem::path folder_;
  std::thread thread_;
};

TEST_CASE("the time that a block of the log takes is no part of an operation") {
  SlowReader reader;
  std::unique_ptr<OperationLog> log;
  REQUIRE(OperationLog::create(reader.path(), &log).is_ok());
  {
    OperationLogWriter writer(*log, 0, board_ns());
    Bench bench({"readproportion=1", "updateproportion=0"}, Phase::kRun);
    bench.log = &writer;
    const PhaseResults results = bench.run(100'000);
    CHECK(bench.duration_s >= 0.4);  // of four blocks or more, the pipe holds one
    CHECK(of(results, OperationKind::kRead).latency.maximum_ns() < 150'000'000);
  }
  log.reset();
}

TEST_CASE("a target rate is kept, and latency counts from the intended start too") {
  Bench bench({"readproportion=1", "updateproportion=0", "target=10000"}, Phase::kRun);
  const PhaseResults results = bench.run(500);
  CHECK(bench.duration_s >= 0.0499);  // 499 ticks of 100 us
  CHECK(of(results, OperationKind::kRead).intended_latency.count() == 500);
  CHECK(of(results, OperationKind::kRead).intended_latency.mean_ns() >=
        of(results, OperationKind::kRead).latency.mean_ns());
}

TEST_CASE("exponential arrivals keep the target's rate at uneven distances") {
  Bench bench({"readproportion=1", "updateproportion=0", "target=20000", "arrivals=exponential",
               "spin.sleep=true"},
              Phase::kRun);
  bench.run(4000);
  const std::vector<int64_t>& began_ns = bench.client.began_ns;
  REQUIRE(began_ns.size() == 4000);
  CHECK(static_cast<double>(began_ns.back() - began_ns.front()) > 0.18e9);  // of 0.2 s
  int short_gaps = 0;
  for (size_t i = 1; i < began_ns.size(); ++i)
    short_gaps += began_ns[i] - began_ns[i - 1] < 25'000 ? 1 : 0;
  CHECK(short_gaps > 1300);  // 39 of 100, and none if they were even
}

TEST_CASE("maxexecutiontime ends a run without a budget") {
  Bench bench({"readproportion=1", "updateproportion=0"}, Phase::kRun);
  const PhaseResults results = bench.run(UINT64_MAX, 0.05);
  CHECK(bench.duration_s >= 0.05);
  CHECK(results.operations() > 0);
}

TEST_CASE("an operation whose tick comes after maxexecutiontime is not done") {
  Bench bench({"readproportion=1", "updateproportion=0", "target=0.1"}, Phase::kRun);
  const PhaseResults results = bench.run(UINT64_MAX, 0.05);
  CHECK(bench.duration_s >= 0.05);
  CHECK(bench.duration_s < 4);       // the second tick comes after 10 s
  CHECK(results.operations() == 0);  // the first is spread over them
}

TEST_CASE("a stop ends the wait for a tick, and the operation is not done") {
  Bench bench({"readproportion=1", "updateproportion=0", "target=0.1"}, Phase::kRun);
  std::thread stopper([&bench] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    bench.stop = true;
  });
  const PhaseResults results = bench.run(UINT64_MAX);
  stopper.join();
  CHECK(bench.duration_s < 4);
  CHECK(results.operations() == 0);
}

TEST_CASE("a stop before the start does nothing but flush") {
  Bench bench({}, Phase::kRun);
  bench.stop = true;
  CHECK(bench.run(1000).operations() == 0);
  CHECK(bench.client.flushes == 1);
}

}  // namespace
}  // namespace opjoule
