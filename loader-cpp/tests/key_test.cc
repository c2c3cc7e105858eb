#include "workload/key.h"

#include <doctest/doctest.h>

namespace opjoule {
namespace {

std::string key(uint64_t number, KeyFormat format = {}) {
  std::string out;
  format_key(number, format, out);
  return out;
}

TEST_CASE("hashed keys are the ones YCSB 0.17.0 loads") {
  CHECK(key(0) == "user6284781860667377211");
  CHECK(key(1) == "user8517097267634966620");
  CHECK(key(2) == "user1820151046732198393");
}

TEST_CASE("the hash runs over all eight bytes of a key number") {
  // From the definition: FNV-1a 64, then the absolute value as a signed number.
  const auto slow = [](uint64_t number) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int i = 0; i < 8; ++i, number >>= 8) hash = (hash ^ (number & 0xff)) * 0x100000001b3;
    return hash >> 63 ? 0 - hash : hash;
  };
  CHECK(key_hash(4294967295) == 5673037472935113441);
  CHECK(key_hash(1099511627776) == 6908947124047430886);
  for (uint64_t number = 1; number != 0; number <<= 1)
    for (const uint64_t near : {number - 1, number, number + 1})
      CHECK(key_hash(near) == slow(near));
}

TEST_CASE("ordered keys are the number itself, padded to zeropadding digits") {
  CHECK(key(0, {.hashed = false, .zero_padding = 1}) == "user0");
  CHECK(key(42, {.hashed = false, .zero_padding = 0}) == "user42");
  CHECK(key(42, {.hashed = false, .zero_padding = 8}) == "user00000042");
  CHECK(key(123456789, {.hashed = false, .zero_padding = 8}) == "user123456789");
  CHECK(key(7, {.hashed = false, .zero_padding = 40}) == "user" + std::string(39, '0') + "7");
  CHECK(key(0, {.hashed = true, .zero_padding = 21}) == "user006284781860667377211");
}

TEST_CASE("every number of digits is written right") {
  uint64_t number = 1;
  for (int digits = 1; digits <= 19; ++digits, number *= 10) {
    CHECK(key(number, {.hashed = false, .zero_padding = 1}) == "user" + std::to_string(number));
    CHECK(key(number - 1, {.hashed = false, .zero_padding = 1}) ==
          "user" + std::to_string(number - 1));
  }
  CHECK(key(UINT64_MAX, {.hashed = false, .zero_padding = 1}) == "user18446744073709551615");
}

}  // namespace
}  // namespace opjoule
