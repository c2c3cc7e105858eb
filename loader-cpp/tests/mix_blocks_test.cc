#include "workload/mix_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "workload/generator.h"

namespace opjoule {
namespace {

using Shares = MixBlocks::Shares;

Status read_settings(std::initializer_list<const char*> assignments, WorkloadSettings* out,
                     Phase phase = Phase::kRun) {
  Properties properties;
  for (const char* each : {"recordcount=1000", "operationcount=1000000", "fieldlength=8"})
    REQUIRE(properties.set(each).is_ok());
  for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
  return WorkloadSettings::from(properties, phase, 0, out);
}

WorkloadSettings settings(std::initializer_list<const char*> assignments) {
  WorkloadSettings out;
  const Status status = read_settings(assignments, &out);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  return out;
}

// What the threads of a run do on a clock of their own, where an operation of each kind takes as
// long as is said.
struct Run {
  Run(const WorkloadSettings& workload, const Shares& each_s, double seconds) : space(workload) {
    std::vector<std::unique_ptr<OperationSource>> sources;
    for (uint32_t thread = 0; thread < workload.threads; ++thread)
      sources.push_back(run_source(space, thread));
    std::vector<int64_t> now_ns(sources.size(), 0);
    while (true) {
      const size_t next = std::min_element(now_ns.begin(), now_ns.end()) - now_ns.begin();
      if (now_ns[next] >= static_cast<int64_t>(seconds * 1e9)) break;
      Status status;
      const size_t count = sources[next]->next(batch, now_ns[next], status);
      for (const Operation& operation : std::span(batch).first(count)) {
        const auto kind = static_cast<size_t>(operation.kind);
        done[kind] += 1;
        now_ns[next] += static_cast<int64_t>(each_s[kind] * 1e9);
        keys.push_back(operation.key);
        sources[next]->done(operation);
      }
      shares_of_second_kind.push_back(share(std::span(batch).first(count), OperationKind::kUpdate));
    }
  }

  [[nodiscard]] double part(OperationKind kind) const {
    double all = 0;
    for (const double each : done) all += each;
    return done[static_cast<size_t>(kind)] / all;
  }

  static double share(std::span<const Operation> of, OperationKind kind) {
    double count = 0;
    for (const Operation& operation : of) count += operation.kind == kind ? 1 : 0;
    return count / static_cast<double>(of.size());
  }

  KeySpace space;
  std::vector<Operation> batch{16};
  Shares done{};
  std::vector<std::string> keys;
  std::vector<double> shares_of_second_kind;  // of each batch
};

double variance(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  const double count = static_cast<double>(values.size());
  return squares / count - sum / count * (sum / count);
}

TEST_CASE("Dirichlet's distribution: shares sum to 1 and have the mean and the spread asked for") {
  Random random(1, 0);
  const Shares mean{0.6, 0.3, 0.099, 0.001, 0, 0};
  for (const double concentration : {1.0, 4.0}) {
    const int draws = 40'000;
    Shares sums{}, squares{};
    for (int i = 0; i < draws; ++i) {
      const Shares shares = draw_dirichlet(random, mean, concentration);
      double sum = 0;
      for (int kind = 0; kind < kOperationKinds; ++kind) {
        CHECK(shares[kind] >= 0);
        sum += shares[kind];
        sums[kind] += shares[kind] / draws;
        squares[kind] += shares[kind] * shares[kind] / draws;
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    }
    CHECK(sums[4] == 0);
    for (int kind = 0; kind < 4; ++kind) {
      const double spread = mean[kind] * (1 - mean[kind]) / (concentration + 1);
      CHECK(std::abs(sums[kind] - mean[kind]) < 5 * std::sqrt(spread / draws));
      if (kind < 3)
        CHECK(squares[kind] - sums[kind] * sums[kind] == doctest::Approx(spread).epsilon(0.05));
    }
  }
}

TEST_CASE("blocks of a mix that changes keep the proportions of the workload over the run") {
  const Shares alike{1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4};
  const Shares unlike{2e-5, 4e-4, 2e-4, 2e-4, 5e-4, 1e-4};
  for (const Shares& each_s : {alike, unlike}) {
    const WorkloadSettings half =
        settings({"readproportion=0.5", "updateproportion=0.5", "mixblock.length_s=0.1"});
    const Run run(half, each_s, 60);
    CHECK(run.part(OperationKind::kRead) == doctest::Approx(0.5).epsilon(0.02));
    CHECK(run.space.mix_blocks->count() > 550);
    CHECK(run.space.mix_blocks->count() <= 600);
    const Run few(
        settings({"readproportion=0.95", "updateproportion=0.05", "mixblock.length_s=0.1"}), each_s,
        60);
    CHECK(few.part(OperationKind::kUpdate) == doctest::Approx(0.05).epsilon(0.1));
    const Run three(settings({"readproportion=0.6", "updateproportion=0.3", "scanproportion=0.1",
                              "mixblock.length_s=0.1"}),
                    each_s, 60);
    CHECK(three.part(OperationKind::kRead) == doctest::Approx(0.6).epsilon(0.03));
    CHECK(three.part(OperationKind::kScan) == doctest::Approx(0.1).epsilon(0.05));
    CHECK(three.part(OperationKind::kInsert) == 0);
  }
}

TEST_CASE("within blocks the mix differs far more than by chance from one operation to the next") {
  const Shares each_s{1e-4, 3e-4, 0, 0, 0, 0};
  const auto spread = [&](const char* length) {
    return variance(
        Run(settings({"readproportion=0.5", "updateproportion=0.5", length}), each_s, 20)
            .shares_of_second_kind);
  };
  CHECK(spread("mixblock.length_s=0") == doctest::Approx(0.25 / 16).epsilon(0.1));
  CHECK(spread("mixblock.length_s=0.1") > 0.1);
}

TEST_CASE("all threads are in the same block") {
  const WorkloadSettings workload = settings(
      {"readproportion=0.5", "updateproportion=0.5", "mixblock.length_s=0.1", "threadcount=2"});
  MixBlocks blocks(workload);
  Shares one{}, other{};
  for (int64_t now_ns = 0; now_ns < 2'000'000'000; now_ns += 50'000'000) {
    const bool begun = blocks.follow(0, now_ns, &one);
    CHECK(begun == (now_ns % 100'000'000 == 0));
    CHECK(blocks.follow(1, now_ns + 1000, &other) == begun);
    CHECK(one == other);
    blocks.add(0, OperationKind::kRead, 10);
    blocks.add(1, OperationKind::kUpdate, 10);
  }
  CHECK(blocks.count() == 20);
  const Run run(workload, {1e-4, 3e-4, 0, 0, 0, 0}, 60);
  CHECK(run.part(OperationKind::kRead) == doctest::Approx(0.5).epsilon(0.02));
}

TEST_CASE("a seed repeats its blocks, another does not") {
  const auto keys = [](const char* seed) {
    return Run(settings(
                   {"readproportion=0.5", "updateproportion=0.5", "mixblock.length_s=0.01", seed}),
               {1e-4, 3e-4, 0, 0, 0, 0}, 1)
        .shares_of_second_kind;
  };
  CHECK(keys("seed=5") == keys("seed=5"));
  CHECK(keys("seed=5") != keys("seed=6"));
}

TEST_CASE("without blocks, and without a length, operations are drawn as ever") {
  const WorkloadSettings plain = settings({});
  const WorkloadSettings zero = settings({"mixblock.length_s=0"});
  const Shares each_s{1e-3, 1e-3, 0, 0, 0, 0};
  CHECK(Run(plain, each_s, 1).keys == Run(zero, each_s, 1).keys);
  CHECK_FALSE(Run(plain, each_s, 1).space.mix_blocks.has_value());
}

TEST_CASE("blocks of one kind of operation, and of a trace, are refused") {
  const auto refused = [&](std::initializer_list<const char*> assignments, Phase phase) {
    WorkloadSettings out;
    const Status status = read_settings(assignments, &out, phase);
    return !status.is_ok() && status.message().find("mixblock.length_s") != std::string::npos;
  };
  CHECK(refused({"readproportion=1", "updateproportion=0", "mixblock.length_s=1"}, Phase::kRun));
  CHECK(refused({"mixblock.length_s=-1"}, Phase::kRun));
  CHECK(refused({"mixblock.length_s=1"}, Phase::kReplay));
  CHECK_FALSE(
      refused({"readproportion=1", "updateproportion=0", "mixblock.length_s=1"}, Phase::kLoad));
}

}  // namespace
}  // namespace opjoule
