#include "loader/row.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <vector>

#include "loader/random.h"

namespace opjoule {
namespace {

Row two_fields() {
  Row row;
  row.reset(std::array<uint16_t, 2>{0, 7}, std::array<uint32_t, 2>{3, 2});
  std::memcpy(row.mutable_values().data(), "abcde", 5);
  return row;
}

Row even_fields() {
  Row row;
  row.reset(std::array<uint16_t, 3>{0, 1, 2}, std::array<uint32_t, 3>{2, 2, 2});
  std::memcpy(row.mutable_values().data(), "aabbcc", 6);
  return row;
}

TEST_CASE("a record of one field of 1000 bytes is stored in 1004, and so is one of ten of 100") {
  Row row;
  row.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{1000});
  CHECK(row.stored().size() == 1004);
  CHECK(row.value_bytes() == 1000);
  std::array<uint32_t, 10> lengths{};
  lengths.fill(100);
  row.reset(std::array<uint16_t, 10>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, lengths);
  CHECK(row.stored().size() == 1004);
  CHECK(row.value_bytes() == 1000);
}

TEST_CASE("the stored bytes follow the layout the header states") {
  const std::string expected(
      "\x01\x00\x02\x00\x00\x00\x00\x00\x03\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00"
      "abcde",
      25);
  CHECK(two_fields().stored() == expected);
}

TEST_CASE("a row that an engine has read into is laid out anew") {
  Row row = even_fields();
  row.buffer().assign(row.stored().size(), 'x');
  REQUIRE(row.reset_even(3, 2));
  CHECK(row.stored().substr(0, 4) == std::string("\x03\x03\x02\x00", 4));
  CHECK(row.value_bytes() == 6);
}

TEST_CASE("fields from 0 on of one length share one header entry") {
  const Row row = even_fields();
  CHECK(row.stored() == std::string("\x03\x03\x02\x00"
                                    "aabbcc",
                                    10));
  Row copy;
  REQUIRE(copy.assign(row.stored()).is_ok());
  for (const Row& each : {row, copy}) {
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
    Row row;
    row.reset(numbers, std::vector<uint32_t>(fields, length));
    std::memset(row.mutable_values().data(), 'x', fields * length);
    CHECK(row.stored()[0] == 1);
    Row copy;
    REQUIRE(copy.assign(row.stored()).is_ok());
    CHECK(copy.field_count() == fields);
    CHECK(copy.value(fields - 1) == std::string(length, 'x'));
  }
}

TEST_CASE("a field of another length makes an even record any, and back") {
  for (const std::string replacement : {"x", "xx", "xxx"}) {
    Row row = even_fields();
    Row changed;
    changed.reset(std::array<uint16_t, 1>{1},
                  std::array<uint32_t, 1>{static_cast<uint32_t>(replacement.size())});
    std::memcpy(changed.mutable_values().data(), replacement.data(), replacement.size());
    row.merge(changed);
    CHECK(row.stored()[0] == (replacement.size() == 2 ? 3 : 1));
    CHECK(row.find(0) == "aa");
    CHECK(row.find(1) == replacement);
    CHECK(row.find(2) == "cc");
    Row again;
    CHECK(again.assign(row.stored()).is_ok());
  }
}

TEST_CASE("fields are found by number, a missing one is told from an empty one") {
  const Row row = two_fields();
  CHECK(row.find(7) == "de");
  CHECK(row.find(1).data() == nullptr);
  CHECK(row.value(0) == "abc");
}

TEST_CASE("a stored record reads back, NUL bytes included") {
  Row row;
  row.reset(std::array<uint16_t, 1>{0}, std::array<uint32_t, 1>{3});
  std::memcpy(row.mutable_value(0).data(), "a\0b", 3);
  Row copy;
  REQUIRE(copy.assign(row.stored()).is_ok());
  CHECK(copy.value(0) == std::string_view("a\0b", 3));
}

TEST_CASE("merge of a whole record replaces every value, one longer or shorter too") {
  for (const uint32_t length : {2u, 3u}) {
    Row row = even_fields();
    Row changed;
    changed.reset(std::array<uint16_t, 3>{0, 1, 2},
                  std::array<uint32_t, 3>{length, length, length});
    const std::string values =
        std::string(length, 'x') + std::string(length, 'y') + std::string(length, 'z');
    std::memcpy(changed.mutable_values().data(), values.data(), values.size());
    row.merge(changed);
    CHECK(row.stored() == changed.stored());
    CHECK(row.find(2) == std::string(length, 'z'));
  }
}

TEST_CASE("merge replaces a field of the same size, of another size, and appends a new one") {
  for (const std::string& replacement : {std::string("XY"), std::string("longer"), std::string()}) {
    Row row = two_fields();
    Row changed;
    changed.reset(std::array<uint16_t, 2>{7, 9},
                  std::array<uint32_t, 2>{static_cast<uint32_t>(replacement.size()), 1});
    std::memcpy(changed.mutable_values().data(), (replacement + "n").data(),
                replacement.size() + 1);
    row.merge(changed);
    CHECK(row.field_count() == 3);
    CHECK(row.find(0) == "abc");
    CHECK(row.find(7) == replacement);
    CHECK(row.find(9) == "n");
    Row again;
    CHECK(again.assign(row.stored()).is_ok());
  }
}

TEST_CASE("every truncation and every damaged layout byte is told as corrupt") {
  const std::pair<Row, std::vector<size_t>> rows[] = {{two_fields(), {0, 1, 2, 8, 16}},
                                                      {even_fields(), {0, 1, 2, 3}}};
  for (const auto& [row, layout_bytes] : rows) {
    const std::string stored(row.stored());
    Row out;
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
  Row out;
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
