#include "workload/field_lengths.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace opjoule {
namespace {

Properties properties(std::initializer_list<const char*> assignments) {
  Properties out;
  for (const char* assignment : assignments) REQUIRE(out.set(assignment).is_ok());
  return out;
}

std::map<uint32_t, int> draw(const FieldLengths& lengths, int draws) {
  Random random(5, 0);
  std::map<uint32_t, int> seen;
  for (int i = 0; i < draws; ++i) ++seen[lengths.draw(random)];
  return seen;
}

class HistogramFile {
 public:
  explicit HistogramFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("opjoule-hist-" + std::to_string(getpid()) + ".txt")) {
    std::ofstream(path_) << text;
  }
  ~HistogramFile() { std::filesystem::remove(path_); }
  Status load(FieldLengths* out) const {
    Properties p = properties({"fieldlengthdistribution=histogram"});
    p.set("fieldlengthhistogram", path_.string());
    return FieldLengths::from(p, out);
  }

 private:
  std::filesystem::path path_;
};

TEST_CASE("constant is fieldlength, 100 by default") {
  FieldLengths lengths;
  REQUIRE(FieldLengths::from(properties({}), &lengths).is_ok());
  CHECK(draw(lengths, 10) == std::map<uint32_t, int>{{100, 10}});
}

TEST_CASE("uniform covers minfieldlength to fieldlength, both included") {
  FieldLengths lengths;
  REQUIRE(FieldLengths::from(
              properties({"fieldlengthdistribution=uniform", "minfieldlength=3", "fieldlength=6"}),
              &lengths)
              .is_ok());
  const auto seen = draw(lengths, 40'000);
  CHECK(seen.size() == 4);
  CHECK(seen.begin()->first == 3);
  for (const auto& [length, count] : seen) CHECK(std::abs(count - 10'000) < 5 * 87);
}

TEST_CASE("zipfian favours the short ones") {
  FieldLengths lengths;
  REQUIRE(FieldLengths::from(properties({"fieldlengthdistribution=zipfian", "fieldlength=1000"}),
                             &lengths)
              .is_ok());
  const auto seen = draw(lengths, 100'000);
  CHECK(seen.begin()->first == 1);
  CHECK(seen.rbegin()->first <= 1000);
  // 1 / zeta(1000), YCSB's first branch being exact.
  CHECK(seen.begin()->second == doctest::Approx(100'000 / zeta(1000, 0.99)).epsilon(0.05));
}

TEST_CASE("a histogram is drawn as YCSB draws it, its bounds included") {
  const HistogramFile file("BlockSize\t10\n0\t2\n1\t3\n2\t5\n");
  FieldLengths lengths;
  REQUIRE(file.load(&lengths).is_ok());
  // Of ten equal draws 0..9 bucket 0 takes 0, 1, 2, bucket 1 takes 3, 4, 5, and the last bucket,
  // which gives its number times the block, the rest.
  const auto seen = draw(lengths, 100'000);
  REQUIRE(seen.size() == 2);
  CHECK(seen.at(10) == doctest::Approx(30'000).epsilon(0.05));
  CHECK(seen.at(20) == doctest::Approx(70'000).epsilon(0.05));
}

TEST_CASE("a wrong histogram file is told with the line and what was expected") {
  FieldLengths lengths;
  CHECK(HistogramFile("").load(&lengths).message().find("line 1: expected BlockSize") !=
        std::string::npos);
  CHECK(HistogramFile("BlockSize\tten\n").load(&lengths).code() == StatusCode::kBadInput);
  CHECK(
      HistogramFile("BlockSize\t10\n1\t2\n").load(&lengths).message().find("line 2: expected 0") !=
      std::string::npos);
  CHECK(HistogramFile("BlockSize\t10\n0\t0\n").load(&lengths).code() == StatusCode::kBadInput);
  CHECK(FieldLengths::from(properties({"fieldlengthdistribution=histogram",
                                       "fieldlengthhistogram=/nowhere/hist.txt"}),
                           &lengths)
            .message()
            .find("/nowhere/hist.txt") != std::string::npos);
}

TEST_CASE("a minimum above the maximum is told") {
  FieldLengths lengths;
  CHECK(FieldLengths::from(properties({"fieldlengthdistribution=uniform", "minfieldlength=200"}),
                           &lengths)
            .message() ==
        "property minfieldlength=200: expected at most fieldlength, which is 100");
}

}  // namespace
}  // namespace opjoule
