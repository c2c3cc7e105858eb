#include "workload/values.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <set>
#include <vector>

namespace opjoule {
namespace {

// Compressed size over size, in blocks of 4 KiB as LevelDB's.
double compressed_share(const std::string& text) {
  uLong compressed = 0;
  for (size_t at = 0; at < text.size(); at += 4096) {
    std::vector<Bytef> out(compressBound(4096));
    uLongf size = out.size();
    compress2(out.data(), &size, reinterpret_cast<const Bytef*>(text.data() + at),
              static_cast<uLong>(std::min<size_t>(4096, text.size() - at)), 1);
    compressed += size;
  }
  return static_cast<double>(compressed) / static_cast<double>(text.size());
}

TEST_CASE("printable values take the characters of YCSB's, position by position") {
  ValueBytes bytes(1, 0, ValueCharacters::kPrintable, 1);
  std::set<char> seen[6];
  std::string value(96 * 500 + 30, '\0');
  bytes.fill_random(value);
  for (size_t i = 0; i < value.size(); ++i) seen[i % 6].insert(value[i]);
  const size_t expected[6] = {32, 64, 64, 32, 64, 64};
  for (int i = 0; i < 6; ++i) {
    CHECK(seen[i].size() == expected[i]);
    CHECK(*seen[i].begin() == ' ');
  }
  CHECK(*seen[0].rbegin() == ' ' + 31);
  CHECK(*seen[1].rbegin() == ' ' + 63);
  CHECK(*seen[2].rbegin() == ' ' + 95);
}

TEST_CASE("any characters are all 256") {
  ValueBytes bytes(1, 0, ValueCharacters::kAny, 1);
  std::string value(100'000, '\0');
  bytes.fill_random(value);
  CHECK(std::set<char>(value.begin(), value.end()).size() == 256);
}

TEST_CASE("no value repeats, in any length, and nothing is written past its end") {
  ValueBytes bytes(1, 0, ValueCharacters::kPrintable, 1);
  for (const size_t length : {8u, 31u, 32u, 33u, 95u, 96u, 97u, 1000u}) {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
      std::string value(length + 1, '#');
      bytes.fill_random({value.data(), length});
      CHECK(value.back() == '#');
      seen.insert(value);
    }
    CHECK(seen.size() == 100);
  }
}

TEST_CASE("threads of one seed write different values, the same seed the same") {
  std::string values[3];
  const std::pair<uint64_t, uint32_t> sources[3] = {{1, 0}, {1, 1}, {1, 0}};
  for (int i = 0; i < 3; ++i) {
    values[i].resize(100);
    ValueBytes(sources[i].first, sources[i].second, ValueCharacters::kPrintable, 1)
        .fill_random(values[i]);
  }
  CHECK(values[0] != values[1]);
  CHECK(values[0] == values[2]);
}

TEST_CASE("the compress ratio is about what a compressor leaves") {
  for (const double ratio : {0.0, 0.25, 0.5, 0.75}) {
    ValueBytes bytes(1, 0, ValueCharacters::kAny, ratio);
    std::string text(1'000'000, '\0');
    for (size_t at = 0; at < text.size(); at += 1000) bytes.fill({text.data() + at, 1000});
    CHECK(compressed_share(text) == doctest::Approx(ratio).epsilon(0.07));
  }
}

TEST_CASE("verifiable values are the ones YCSB 0.17.0 loads with dataintegrity=true") {
  std::string value(100, '\0');
  deterministic_value("user6284781860667377211", "field0", value);
  CHECK(value ==
        "user6284781860667377211:field0:-56807877:2032869390:-165488160:1762371712:-169193395:"
        "-1039977118:-10");
  value.resize(5);
  deterministic_value("user6284781860667377211", "field0", value);
  CHECK(value == "user6");
  deterministic_value("user6284781860667377211", "field0", {});
}

}  // namespace
}  // namespace opjoule
