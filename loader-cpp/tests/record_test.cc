#include "loader/record.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "loader/random.h"

namespace opjoule {
namespace {

Record two_fields() {
  Record record;
  record.reset(std::array<uint16_t, 2>{0, 7}, std::array<uint32_t, 2>{3, 2});
  std::memcpy(record.mutable_values().data(), "abcde", 5);
  return record;
}

Record even_fields() {
  Record record;
  record.reset(std::array<uint16_t, 3>{0, 1, 2}, std::array<uint32_t, 3>{2, 2, 2});
  std::memcpy(record.mutable_values().data(), "aabbcc", 6);
  return record;
}

TEST_CASE("a record of one field of 1000 bytes is stored in 1004, and so is one of ten of 100") {
  Record record;
  record.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{1000});
  CHECK(record.stored().size() == 1004);
  CHECK(record.value_bytes() == 1000);
  std::array<uint32_t, 10> lengths{};
  lengths.fill(100);
  record.reset(std::array<uint16_t, 10>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, lengths);
  CHECK(record.stored().size() == 1004);
  CHECK(record.value_bytes() == 1000);
}

TEST_CASE("the stored bytes follow the layout the header states") {
  const std::string expected(
      "\x01\x00\x02\x00\x00\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00"
      "abcde",
      25);
  CHECK(two_fields().stored() == expected);
}

TEST_CASE("fields from 0 on of one length share one header entry") {
  const Record record = even_fields();
  CHECK(record.stored() == std::string("\x03\x03\x02\x00"
                                       "aabbcc",
                                       10));
  Record copy;
  REQUIRE(copy.assign(record.stored()).is_ok());
  for (const Record& each : {record, copy}) {
    CHECK(each.field_count() == 3);
    CHECK(each.field_number(2) == 2);
    CHECK(each.value(1) == "bb");
    CHECK(each.find(2) == "cc");
    CHECK(each.find(3).data() == nullptr);
    CHECK(each.value_bytes() == 6);
  }
}

TEST_CASE("more fields, or longer ones, than the short header can say are stored all the same") {
  for (const auto& [fields, length] : {std::pair<size_t, uint32_t>{256, 2}, {1, 65'536}}) {
    std::vector<uint16_t> numbers(fields);
    for (size_t i = 0; i < fields; ++i) numbers[i] = static_cast<uint16_t>(i);
    Record record;
    record.reset(numbers, std::vector<uint32_t>(fields, length));
    std::memset(record.mutable_values().data(), 'x', fields * length);
    CHECK(record.stored()[0] == 1);
    Record copy;
    REQUIRE(copy.assign(record.stored()).is_ok());
    CHECK(copy.field_count() == fields);
    CHECK(copy.value(fields - 1) == std::string(length, 'x'));
  }
}

TEST_CASE("a field of another length makes an even record any, and back") {
  for (const std::string replacement : {"x", "xx", "xxx"}) {
    Record record = even_fields();
    Record changed;
    changed.reset(std::array<uint16_t, 1>{1},
                  std::array<uint32_t, 1>{static_cast<uint32_t>(replacement.size())});
    std::memcpy(changed.mutable_values().data(), replacement.data(), replacement.size());
    record.merge(changed);
    CHECK(record.stored()[0] == (replacement.size() == 2 ? 3 : 1));
    CHECK(record.find(0) == "aa");
    CHECK(record.find(1) == replacement);
    CHECK(record.find(2) == "cc");
    Record again;
    CHECK(again.assign(record.stored()).is_ok());
  }
}

TEST_CASE("fields are found by number, a missing one is told from an empty one") {
  const Record record = two_fields();
  CHECK(record.find(7) == "de");
  CHECK(record.find(1).data() == nullptr);
  CHECK(record.value(0) == "abc");
}

TEST_CASE("a stored record reads back, NUL bytes included") {
  Record record;
  record.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{3});
  std::memcpy(record.mutable_value(0).data(), "a\0b", 3);
  Record copy;
  REQUIRE(copy.assign(record.stored()).is_ok());
  CHECK(copy.value(0) == std::string_view("a\0b", 3));
}

TEST_CASE("merge of a whole record replaces every value, one longer or shorter too") {
  for (const uint32_t length : {2u, 3u}) {
    Record record = even_fields();
    Record changed;
    changed.reset(std::array<uint16_t, 3>{0, 1, 2},
                  std::array<uint32_t, 3>{length, length, length});
    const std::string values =
        std::string(length, 'x') + std::string(length, 'y') + std::string(length, 'z');
    std::memcpy(changed.mutable_values().data(), values.data(), values.size());
    record.merge(changed);
    CHECK(record.stored() == changed.stored());
    CHECK(record.find(2) == std::string(length, 'z'));
  }
}

TEST_CASE("merge replaces a field of the same size, of another size, and appends a new one") {
  for (const std::string& replacement : {std::string("XY"), std::string("longer"), std::string()}) {
    Record record = two_fields();
    Record changed;
    changed.reset(std::array<uint16_t, 2>{7, 9},
                  std::array<uint32_t, 2>{static_cast<uint32_t>(replacement.size()), 1});
    std::memcpy(changed.mutable_values().data(), (replacement + "n").data(),
                replacement.size() + 1);
    record.merge(changed);
    CHECK(record.field_count() == 3);
    CHECK(record.find(0) == "abc");
    CHECK(record.find(7) == replacement);
    CHECK(record.find(9) == "n");
    Record again;
    CHECK(again.assign(record.stored()).is_ok());
  }
}

TEST_CASE("every truncation and every damaged layout byte is told as corrupt") {
  const std::pair<Record, std::vector<size_t>> records[] = {{two_fields(), {0, 1, 2, 8, 16}},
                                                            {even_fields(), {0, 1, 2, 3}}};
  for (const auto& [record, layout_bytes] : records) {
    const std::string stored(record.stored());
    Record out;
    for (size_t length = 0; length < stored.size(); ++length)
      CHECK(out.assign(stored.substr(0, length)).code() == StatusCode::kCorrupt);
    for (const size_t at : layout_bytes) {
      std::string damaged = stored;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
      CHECK(out.assign(damaged).code() == StatusCode::kCorrupt);
    }
  }
}

TEST_CASE("whatever bytes are stored, a record is parsed within them or told as corrupt") {
  const std::string intact[] = {std::string(two_fields().stored()),
                                std::string(even_fields().stored())};
  Random random(1, 0);
  Record out;
  size_t outside = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::string& stored = intact[i % 2];
    std::string damaged = stored.substr(0, random.below(stored.size() + 1));
    for (uint64_t edits = random.below(4); edits > 0 && !damaged.empty(); --edits)
      damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    if (!out.assign(damaged).is_ok()) continue;
    uint64_t bytes = 0;
    for (size_t field = 0; field < out.field_count(); ++field) {
      const std::string_view value = out.value(field);
      bytes += value.size();
      if (value.data() + value.size() > out.stored().data() + out.stored().size()) ++outside;
    }
    if (bytes != out.value_bytes()) ++outside;
  }
  CHECK(outside == 0);
}

}  // namespace
}  // namespace opjoule
