#include "workload/settings.h"

#include <doctest/doctest.h>

#include <set>

namespace opjoule {
namespace {

Status read(std::initializer_list<const char*> assignments, Phase phase = Phase::kRun,
            uint32_t threads = 0) {
  Properties properties;
  for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
  WorkloadSettings settings;
  return WorkloadSettings::from(properties, phase, threads, &settings);
}

TEST_CASE("the defaults are YCSB's") {
  Properties properties;
  properties.set("recordcount", "1000");
  WorkloadSettings settings;
  REQUIRE(WorkloadSettings::from(properties, Phase::kLoad, 0, &settings).is_ok());
  CHECK(settings.insert_count == 1000);
  CHECK(settings.field_count == 10);
  CHECK(settings.field_lengths.maximum() == 100);
  CHECK(settings.proportion[static_cast<int>(OperationKind::kRead)] == 0.95);
  CHECK(settings.proportion[static_cast<int>(OperationKind::kUpdate)] == 0.05);
  CHECK(settings.distribution == RequestDistribution::kUniform);
  CHECK(settings.key_format.hashed);
  CHECK(settings.key_format.zero_padding == 1);
  CHECK(settings.read_all_fields);
  CHECK_FALSE(settings.write_all_fields);
  CHECK(settings.scan_minimum == 1);
  CHECK(settings.scan_maximum == 1000);
  CHECK(settings.threads == 1);
}

TEST_CASE("contradictions are told with both sides") {
  for (const Status& none : {read({}), read({"recordcount=0"})})
    CHECK(none.message().find("recordcount: not given, or 0; set") != std::string::npos);
  CHECK(read({"recordcount=10"}).message().find("operationcount: not given") != std::string::npos);
  CHECK(read({"recordcount=10", "maxexecutiontime=1"}).is_ok());
  CHECK(read({"recordcount=10", "insertstart=5", "insertcount=6"}, Phase::kLoad).message() ==
        "insertstart=5 + insertcount=6: expected at most recordcount, which is 10");
  CHECK(read({"recordcount=10", "insertstart=10"}, Phase::kLoad).code() == StatusCode::kBadInput);
  CHECK(read({"recordcount=10", "minscanlength=9", "maxscanlength=3"}, Phase::kLoad).message() ==
        "property minscanlength=9: expected at most maxscanlength, which is 3");
  CHECK(read({"recordcount=10", "dataintegrity=true", "fieldlengthdistribution=uniform"},
             Phase::kLoad)
            .code() == StatusCode::kBadInput);
  CHECK(read({"recordcount=10", "readproportion=0", "updateproportion=0"}, Phase::kLoad).code() ==
        StatusCode::kBadInput);
  CHECK(read({"recordcount=4", "requestdistribution=hotspot"}, Phase::kLoad).code() ==
        StatusCode::kBadInput);
  CHECK(read({"recordcount=10", "fieldcount=60000", "fieldlength=1000000"}, Phase::kLoad).code() ==
        StatusCode::kBadInput);
}

TEST_CASE("an exponent that YCSB's distributions do not have is refused for them") {
  const auto with = [](const char* distribution, const char* theta) {
    return read({"recordcount=10", "operationcount=1", distribution, theta});
  };
  CHECK(with("requestdistribution=truezipfian", "zipfianconstant=0.8").is_ok());
  CHECK(with("requestdistribution=zipfian", "zipfianconstant=0.99").is_ok());
  CHECK(with("requestdistribution=uniform", "truezipfian.theta=0.8").is_ok());
  for (const char* ycsbs : {"requestdistribution=zipfian", "requestdistribution=latest"})
    CHECK(with(ycsbs, "zipfian.theta=0.8").message().find("set requestdistribution=truezipfian") !=
          std::string::npos);
}

TEST_CASE("values out of range name the property") {
  for (const char* bad :
       {"operationcount=-1", "fieldcount=0", "fieldlength=-5", "zeropadding=-1", "threadcount=0",
        "readproportion=-0.1", "insertorder=random", "requestdistribution=gauss", "seed=x",
        "core_workload_insertion_retry_limit=-1", "target=-5", "valuecompressratio=2",
        "valuetext=/no/such/file", "workload=site.ycsb.workloads.TimeSeriesWorkload", "table=a b",
        "table=a\nb", "fieldnameprefix=a\nb", "fieldnameprefix=a\x7f"}) {
    const Status status = read({"recordcount=10", bad}, Phase::kLoad);
    CHECK(status.code() == StatusCode::kBadInput);
    const std::string key(bad, std::string(bad).find('='));
    CHECK_MESSAGE(status.message().find(key) != std::string::npos, bad);
  }
}

TEST_CASE("a blind update needs all fields of its record") {
  CHECK(read({"recordcount=10", "operationcount=1", "updates=blind"}, Phase::kRun)
            .message()
            .find("an update of one of 10 fields has to read the others") != std::string::npos);
  for (const char* fitting : {"fieldcount=1", "writeallfields=true", "updateproportion=0"})
    CHECK(read({"recordcount=10", "operationcount=1", "updates=blind", fitting}, Phase::kRun)
              .is_ok());
  CHECK(read({"recordcount=10", "updates=blind"}, Phase::kLoad).is_ok());
  CHECK(read({"updates=blind"}, Phase::kReplay).is_ok());
}

TEST_CASE("the command line's threads win over threadcount") {
  Properties properties;
  properties.set("recordcount", "1000");
  properties.set("threadcount", "2");
  WorkloadSettings settings;
  REQUIRE(WorkloadSettings::from(properties, Phase::kLoad, 8, &settings).is_ok());
  CHECK(settings.threads == 8);
}

TEST_CASE("no property is listed twice") {
  std::set<std::string> seen;
  for (const auto* rules : {&workload_rules(), &inert_rules()})
    for (const PropertyRule& rule : *rules) CHECK_MESSAGE(seen.insert(rule.key).second, rule.key);
}

}  // namespace
}  // namespace opjoule
