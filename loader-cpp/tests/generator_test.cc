#include "workload/generator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

namespace opjoule {
namespace {

WorkloadSettings settings(std::initializer_list<const char*> assignments,
                          Phase phase = Phase::kRun) {
  Properties properties;
  properties.set("operationcount", "1000000");
  properties.set("insertorder", "ordered");
  properties.set("fieldlength", "8");
  for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
  WorkloadSettings out;
  const Status status = WorkloadSettings::from(properties, phase, 0, &out);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  return out;
}

// Requests for each key number, sorted by how many: draws[0] is the hottest.
struct Draws {
  std::map<uint64_t, int> by_number;
  std::vector<int> hottest_first;
};

Draws draw(const WorkloadSettings& workload, int count) {
  KeySpace state(workload);
  Random random(workload.seed, 0);
  KeyChooser keys(state, random);
  Draws draws;
  const uint64_t last = state.inserts.acknowledged_end() - 1;
  for (int i = 0; i < count; ++i) ++draws.by_number[keys.draw(last)];
  for (const auto& [number, seen] : draws.by_number) draws.hottest_first.push_back(seen);
  std::sort(draws.hottest_first.rbegin(), draws.hottest_first.rend());
  return draws;
}

double hot_share(const Draws& draws, size_t keys, int count) {
  double sum = 0;
  for (size_t i = 0; i < keys; ++i) sum += draws.hottest_first[i];
  return sum / count;
}

std::vector<Operation> generate(RunGenerator& generator, size_t count) {
  std::vector<Operation> all;
  std::vector<Operation> batch(16);
  Status status;
  while (all.size() < count) {
    const size_t got = generator.next(batch, 0, status);
    for (size_t i = 0; i < got; ++i) {
      all.push_back(batch[i]);
      generator.done(batch[i]);
    }
  }
  return all;
}

TEST_CASE("YCSB's scrambled Zipfian has the shares measured from YCSB") {
  // With 1,000 rows the hottest key gets 3.9 %, with 500,000 the hottest 1 % of keys get 36.9 %.
  const int count = 500'000;
  CHECK(hot_share(draw(settings({"recordcount=1000", "requestdistribution=zipfian"}), count), 1,
                  count) == doctest::Approx(0.039).epsilon(0.03));
  CHECK(hot_share(draw(settings({"recordcount=500000", "requestdistribution=zipfian"}), count),
                  5000, count) == doctest::Approx(0.369).epsilon(0.02));
}

TEST_CASE("truezipfian has the shares of a Zipf distribution") {
  const int count = 500'000;
  const Draws small =
      draw(settings({"recordcount=1000", "requestdistribution=truezipfian"}), count);
  CHECK(hot_share(small, 1, count) == doctest::Approx(1 / zeta(1000, 0.99)).epsilon(0.01));
  CHECK(small.by_number.size() == 1000);
  CHECK(hot_share(draw(settings({"recordcount=500000", "requestdistribution=truezipfian"}), count),
                  5000, count) == doctest::Approx(0.655).epsilon(0.01));
}

TEST_CASE("scrambled draws stay below the records there are, whatever inserts are expected") {
  for (const char* inserts : {"insertproportion=0", "insertproportion=0.5"}) {
    const Draws draws = draw(
        settings({"recordcount=100", "operationcount=100", "requestdistribution=zipfian", inserts}),
        100'000);
    CHECK(draws.by_number.rbegin()->first == 99);
  }
}

TEST_CASE("requests of a run that time ends do not depend on that time") {
  const auto draws = [](const char* end, const char* room = "requestdistribution=zipfian") {
    return draw(settings({"recordcount=1000", "operationcount=0", "insertproportion=0.05",
                          "requestdistribution=zipfian", end, room}),
                100'000)
        .by_number;
  };
  const std::map<uint64_t, int> short_run = draws("maxexecutiontime=10");
  CHECK(draws("maxexecutiontime=600") == short_run);
  CHECK(draws("operationcount=1000") == short_run);
  CHECK(draws("operationcount=1000000", "insertroom.operations=1000") == short_run);
  CHECK(draws("operationcount=1000000") != short_run);
}

TEST_CASE("latest favours the newest record, and never draws key 0") {
  const Draws draws = draw(settings({"recordcount=1000", "requestdistribution=latest"}), 200'000);
  CHECK(draws.by_number.begin()->first == 1);
  CHECK(draws.by_number.rbegin()->first == 999);
  CHECK(draws.by_number.at(999) == draws.hottest_first[0]);
  CHECK(draws.by_number.at(999) / 200'000.0 == doctest::Approx(1 / zeta(999, 0.99)).epsilon(0.03));
}

TEST_CASE("latest draws records that exist, however few there were before the inserts") {
  for (const char* records : {"recordcount=1", "recordcount=2", "recordcount=3"}) {
    const WorkloadSettings workload =
        settings({records, "insertproportion=0.5", "requestdistribution=latest"});
    KeySpace state(workload);
    Random random(workload.seed, 0);
    KeyChooser keys(state, random);
    std::map<uint64_t, int> beyond;
    for (uint64_t last = workload.row_count - 1; last < 100; ++last)
      for (int i = 0; i < 1000; ++i)
        if (const uint64_t number = keys.draw(last); number > last) ++beyond[number];
    CHECK_MESSAGE(beyond.empty(), records);
  }
}

TEST_CASE("exponential ends, and is uniform where its mean is far beyond the records") {
  const Draws draws =
      draw(settings({"recordcount=100", "requestdistribution=exponential", "exponential.frac=1e9"}),
           2000);
  CHECK(draws.by_number.size() == 100);
  CHECK(draws.hottest_first[0] < 20 + 6 * 4.5);
}

TEST_CASE("draws end where hardly any key of the room for inserts is there") {
  for (const char* distribution :
       {"requestdistribution=zipfian", "requestdistribution=truezipfian"}) {
    const Draws draws = draw(settings({"recordcount=1000", "insertproportion=5", distribution,
                                       "insertroom.operations=1000000000000"}),
                             200);
    CHECK(draws.by_number.rbegin()->first < 1000);
    CHECK(draws.by_number.size() > 20);
  }
}

TEST_CASE("uniform covers insertstart to insertstart + insertcount alone") {
  const Draws draws =
      draw(settings({"recordcount=1000", "insertstart=100", "insertcount=50"}), 100'000);
  CHECK(draws.by_number.begin()->first == 100);
  CHECK(draws.by_number.rbegin()->first == 149);
  CHECK(draws.by_number.size() == 50);
  CHECK(draws.hottest_first[0] < 2000 + 5 * 45);
}

TEST_CASE("hotspot sends its share to the first records") {
  const Draws draws = draw(settings({"recordcount=1000", "requestdistribution=hotspot",
                                     "hotspotdatafraction=0.1", "hotspotopnfraction=0.7"}),
                           100'000);
  int hot = 0;
  for (const auto& [number, seen] : draws.by_number)
    if (number < 100) hot += seen;
  CHECK(hot == doctest::Approx(70'000).epsilon(0.02));
}

TEST_CASE("exponential sends its percentile to its newest fraction") {
  const Draws draws = draw(settings({"recordcount=10000", "requestdistribution=exponential",
                                     "exponential.percentile=90", "exponential.frac=0.1"}),
                           100'000);
  int newest = 0;
  for (const auto& [number, seen] : draws.by_number)
    if (number >= 9000) newest += seen;
  CHECK(newest == doctest::Approx(90'000).epsilon(0.02));
}

TEST_CASE("sequential goes through the records again and again, all threads together") {
  const WorkloadSettings workload =
      settings({"recordcount=10", "requestdistribution=sequential", "threadcount=2"});
  KeySpace state(workload);
  Random random(1, 0);
  KeyChooser a(state, random);
  KeyChooser b(state, random);
  for (uint64_t i = 0; i < 30; ++i) CHECK((i % 2 == 0 ? a : b).draw(9) == i % 10);
}

TEST_CASE("operations come in the proportions asked for") {
  const WorkloadSettings workload = settings(
      {"recordcount=1000", "readproportion=0.3", "updateproportion=0.2", "insertproportion=0.1",
       "scanproportion=0.1", "readmodifywriteproportion=0.2", "removeproportion=0.1"});
  KeySpace state(workload);
  RunGenerator generator(state, 0);
  std::map<OperationKind, int> seen;
  const std::vector<Operation> operations = generate(generator, 100'000);
  for (const Operation& operation : operations) ++seen[operation.kind];
  const double all = static_cast<double>(operations.size());
  CHECK(seen[OperationKind::kRead] / all == doctest::Approx(0.3).epsilon(0.03));
  CHECK(seen[OperationKind::kUpdate] / all == doctest::Approx(0.2).epsilon(0.03));
  CHECK(seen[OperationKind::kInsert] / all == doctest::Approx(0.1).epsilon(0.05));
  CHECK(seen[OperationKind::kScan] / all == doctest::Approx(0.1).epsilon(0.05));
  CHECK(seen[OperationKind::kReadModifyWrite] / all == doctest::Approx(0.2).epsilon(0.03));
  CHECK(seen[OperationKind::kRemove] / all == doctest::Approx(0.1).epsilon(0.05));
}

TEST_CASE("inserts take the next key numbers, end their batch, and can be read afterwards") {
  const WorkloadSettings workload =
      settings({"recordcount=100", "readproportion=0.5", "updateproportion=0",
                "insertproportion=0.5", "requestdistribution=latest"});
  KeySpace state(workload);
  RunGenerator generator(state, 0);
  std::vector<Operation> batch(16);
  Status status;
  uint64_t next = 100;
  for (int i = 0; i < 1000; ++i) {
    const size_t count = generator.next(batch, 0, status);
    for (size_t at = 0; at < count; ++at) {
      const uint64_t number = std::stoull(batch[at].key.substr(4));
      if (batch[at].kind == OperationKind::kInsert) {
        CHECK(at == count - 1);
        CHECK(number == next++);
      } else {
        CHECK(number < next);
      }
      generator.done(batch[at]);
    }
  }
  CHECK(next > 600);
}

TEST_CASE("a seed repeats its operations, another does not") {
  const auto keys = [](const char* seed) {
    const WorkloadSettings workload = settings({"recordcount=100000", seed});
    KeySpace state(workload);
    RunGenerator generator(state, 0);
    std::vector<std::string> all;
    for (const Operation& operation : generate(generator, 100)) all.push_back(operation.key);
    return all;
  };
  CHECK(keys("seed=5") == keys("seed=5"));
  CHECK(keys("seed=5") != keys("seed=6"));
}

TEST_CASE("updates write one field or all, reads ask for one field or all") {
  const auto first = [](std::initializer_list<const char*> assignments) {
    const WorkloadSettings workload = settings(assignments);
    KeySpace state(workload);
    RunGenerator generator(state, 0);
    return generate(generator, 1)[0];
  };
  const Operation one = first({"recordcount=10", "readproportion=0", "updateproportion=1"});
  CHECK(one.values.field_count() == 1);
  CHECK_FALSE(one.whole);
  const Operation all =
      first({"recordcount=10", "readproportion=0", "updateproportion=1", "writeallfields=true"});
  CHECK(all.values.field_count() == 10);
  CHECK(all.whole);
  CHECK(first({"recordcount=10", "readproportion=1", "updateproportion=0"}).fields.all);
  CHECK_FALSE(
      first({"recordcount=10", "readproportion=1", "updateproportion=0", "readallfields=false"})
          .fields.all);
}

TEST_CASE("scan lengths fill their range") {
  for (const char* distribution :
       {"scanlengthdistribution=uniform", "scanlengthdistribution=zipfian"}) {
    const WorkloadSettings workload =
        settings({"recordcount=10", "readproportion=0", "updateproportion=0", "scanproportion=1",
                  "minscanlength=3", "maxscanlength=6", distribution});
    KeySpace state(workload);
    RunGenerator generator(state, 0);
    std::map<uint64_t, int> seen;
    for (const Operation& operation : generate(generator, 4000)) ++seen[operation.scan_length];
    CHECK(seen.size() == 4);
    CHECK(seen.begin()->first == 3);
    CHECK(seen.rbegin()->first == 6);
  }
}

TEST_CASE("a load inserts each key number once, whatever the threads") {
  const WorkloadSettings workload = settings(
      {"recordcount=1000", "insertstart=100", "insertcount=320", "threadcount=2"}, Phase::kLoad);
  KeySpace state(workload);
  LoadGenerator a(state, 0);
  LoadGenerator b(state, 1);
  std::vector<Operation> batch(16);
  std::set<std::string> keys;
  Status status;
  for (int i = 0; i < 20; ++i) {
    REQUIRE((i % 3 == 0 ? a : b).next(batch, 0, status) == 16);
    for (const Operation& operation : batch) keys.insert(operation.key);
  }
  CHECK(keys.size() == 320);
  CHECK(keys.count("user100") == 1);
  CHECK(keys.count("user419") == 1);
}

TEST_CASE("values of dataintegrity verify, altered ones do not") {
  const WorkloadSettings workload =
      settings({"recordcount=10", "dataintegrity=true", "fieldlength=40"}, Phase::kLoad);
  KeySpace state(workload);
  LoadGenerator load(state, 0);
  std::vector<Operation> batch(1);
  Status status;
  REQUIRE(load.next(batch, 0, status) == 1);
  CHECK(verify_values(workload, batch[0].key, {}, batch[0].values).is_ok());
  CHECK(verify_values(workload, "user1", {}, batch[0].values).code() == StatusCode::kCorrupt);
  batch[0].values.mutable_value(3)[39] ^= 1;
  const Status altered = verify_values(workload, batch[0].key, {}, batch[0].values);
  CHECK(altered.code() == StatusCode::kCorrupt);
  CHECK(altered.message().find("field3") != std::string::npos);
  CHECK(verify_values(workload, batch[0].key, {false, 2}, batch[0].values).is_ok());
}

}  // namespace
}  // namespace opjoule
