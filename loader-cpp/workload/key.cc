#include "workload/key.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace opjoule {
namespace {

constexpr auto kPairs = [] {
  std::array<char, 200> digits{};
  for (int i = 0; i < 100; ++i) {
    digits[2 * i] = static_cast<char>('0' + i / 10);
    digits[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

void put_pair(char* out, uint32_t value) { std::memcpy(out, &kPairs[2 * value], 2); }

// Eight digits by independent divisions, so that the processor overlaps them.
void put_eight(char* out, uint32_t value) {
  const uint32_t high = value / 10000;
  const uint32_t low = value % 10000;
  put_pair(out, high / 100);
  put_pair(out + 2, high % 100);
  put_pair(out + 4, low / 100);
  put_pair(out + 6, low % 100);
}

constexpr size_t kDigits = 24;

// Writes `value` right-aligned into kDigits characters, zeros before it.
void put_digits(char* out, uint64_t value) {
  constexpr uint64_t kEight = 100'000'000;
  put_eight(out + 16, static_cast<uint32_t>(value % kEight));
  const uint64_t rest = value / kEight;
  put_eight(out + 8, static_cast<uint32_t>(rest % kEight));
  put_eight(out, static_cast<uint32_t>(rest / kEight));
}

constexpr auto kPowers = [] {
  std::array<uint64_t, 20> powers{1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * 10;
  return powers;
}();

// Decimal digits of `value`: log10(2) is close enough to 1233 / 4096 for 64 bits; one comparison
// corrects the rest.
size_t count_digits(uint64_t value) {
  const size_t guess = static_cast<size_t>(std::bit_width(value | 1)) * 1233 >> 12;
  return guess + (value >= kPowers[guess] ? 1 : 0);
}

}  // namespace

void format_key(uint64_t number, const KeyFormat& format, std::string& key) {
  const uint64_t value = format.hashed ? key_hash(number) : number;
  char digits[kDigits];
  put_digits(digits, value);
  const size_t count = std::max<size_t>(count_digits(value), 1);
  const size_t padding = format.zero_padding > count ? format.zero_padding - count : 0;
  key.resize(4 + padding + count);
  char* out = key.data();
  std::memcpy(out, "user", 4);
  if (padding > 0) [[unlikely]]
    std::memset(out + 4, '0', padding);
  std::memcpy(out + 4 + padding, digits + kDigits - count, count);
}

}  // namespace opjoule
