#include "workload/preflight.h"

#include <doctest/doctest.h>

#include <set>

#include "workload/generator.h"

namespace opjoule {
namespace {

// A database that is a set of key names.
class SetClient : public Client {
 public:
  Status read(std::string_view key, FieldChoice, Row& out) override {
    ++reads;
    if (broken) return {StatusCode::kIo, "the device is gone"};
    out.reset({}, {});
    return keys.contains(std::string(key)) ? Status::ok() : Status::not_found();
  }
  Status insert(std::string_view key, const Row&) override {
    return keys.insert(std::string(key)).second ? Status::ok()
                                                : Status{StatusCode::kExists, "there already"};
  }
  Status update(std::string_view, const Row&, bool) override { return Status::ok(); }
  Status scan(std::string_view, uint64_t, FieldChoice, const Visitor&) override {
    return Status::ok();
  }
  Status remove(std::string_view, bool) override { return Status::ok(); }

  std::set<std::string> keys;
  bool broken = false;
  int reads = 0;
};

WorkloadSettings settings_of(std::initializer_list<const char*> assignments = {}) {
  Properties properties;
  properties.set("recordcount", "50000");
  properties.set("fieldcount", "1");
  properties.set("fieldlength", "1");
  for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
  WorkloadSettings out;
  REQUIRE(WorkloadSettings::from(properties, Phase::kLoad, 0, &out).is_ok());
  return out;
}

void put(SetClient& client, const WorkloadSettings& workload, uint64_t begin, uint64_t end) {
  std::string key;
  for (uint64_t number = begin; number < end; ++number) {
    format_key(number, workload.key_format, key);
    client.keys.insert(key);
  }
}

// Goes on from what is there; false if an insert met a key that is.
bool resume(SetClient& client, const WorkloadSettings& workload) {
  ResumePoint point;
  const Status status = find_resume_point(client, workload, client.keys.size(), &point);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  KeySpace state(workload);
  state.next_load_number = point.first_number;
  state.check_end = point.check_end;
  LoadGenerator source(state, 0, &client);
  std::vector<Operation> batch(16);
  Status failure;
  bool all_new = true;
  while (const size_t count = source.next(batch, 0, failure))
    for (size_t i = 0; i < count; ++i)
      all_new = client.insert(batch[i].key, batch[i].values).is_ok() && all_new;
  CHECK(failure.is_ok());
  return all_new;
}

TEST_CASE("a load resumes after what is there, whatever threads and kills left") {
  const WorkloadSettings workload = settings_of();
  const std::vector<std::pair<uint64_t, uint64_t>> left_overs[] = {
      {},
      {{0, 1}},
      {{0, 20'000}},
      {{0, 50'000}},
      {{0, 49'999}},
      {{0, 19'990}, {20'003, 20'040}},  // threads ended apart
      {{0, 1'000}, {1'013, 30'000}},    // a hole far behind
      {{16, 40'000}},                   // the first batch is missing
      {{0, 10'000}, {45'000, 50'000}},
  };
  for (const auto& ranges : left_overs) {
    SetClient client;
    for (const auto& [begin, end] : ranges) put(client, workload, begin, end);
    CHECK(resume(client, workload));
    CHECK(client.keys.size() == 50'000);
  }
}

TEST_CASE("resuming a long load looks at few keys") {
  SetClient client;
  const WorkloadSettings workload = settings_of();
  put(client, workload, 0, 40'000);
  resume(client, workload);
  CHECK(client.reads < 20'000);
}

TEST_CASE("a part of a load resumes beside other loaders' parts") {
  const WorkloadSettings workload = settings_of({"insertstart=10000", "insertcount=20000"});
  SetClient client;
  put(client, workload, 0, 15'000);
  put(client, workload, 30'000, 50'000);
  CHECK(resume(client, workload));
  CHECK(client.keys.size() == 50'000);
}

TEST_CASE("another workload's keys are told, before a run and before a resumed load") {
  SetClient client;
  const WorkloadSettings ordered = settings_of({"insertorder=ordered"});
  put(client, ordered, 0, 50'000);
  ResumePoint point;
  CHECK(find_resume_point(client, settings_of(), 50'000, &point).code() == StatusCode::kMismatch);
  CHECK(check_loaded(client, settings_of()).code() == StatusCode::kMismatch);
  CHECK(check_loaded(client, ordered).is_ok());
}

TEST_CASE(
    "a run's check tells a database of fewer records, and accepts one whose last record is gone") {
  SetClient client;
  put(client, settings_of(), 0, 40'000);
  const Status status = check_loaded(client, settings_of());
  CHECK(status.code() == StatusCode::kMismatch);
  CHECK(status.message().find("(number 49999): it was loaded with a smaller recordcount") !=
        std::string::npos);
  put(client, settings_of(), 40'000, 49'990);
  CHECK(check_loaded(client, settings_of()).is_ok());
}

TEST_CASE("a run's check accepts a database that earlier removals thinned out") {
  SetClient client;
  put(client, settings_of(), 30'000, 50'000);
  CHECK(check_loaded(client, settings_of()).is_ok());
}

TEST_CASE("a run that would insert the keys of an earlier run says so") {
  SetClient client;
  const WorkloadSettings reads = settings_of();
  const WorkloadSettings inserts = settings_of({"insertproportion=0.1"});
  put(client, inserts, 0, 50'000);
  CHECK(check_not_inserted(client, inserts).is_ok());
  put(client, inserts, 50'000, 50'001);
  CHECK(check_not_inserted(client, reads).is_ok());
  const Status status = check_not_inserted(client, inserts);
  CHECK(status.code() == StatusCode::kMismatch);
  CHECK(status.message().find("(number 50000) already: an earlier run inserted it") !=
        std::string::npos);
}

TEST_CASE("a failing device is told as such") {
  SetClient client;
  client.broken = true;
  ResumePoint point;
  CHECK(check_loaded(client, settings_of()).code() == StatusCode::kIo);
  CHECK(find_resume_point(client, settings_of(), 1, &point).code() == StatusCode::kIo);
}

}  // namespace
}  // namespace opjoule
