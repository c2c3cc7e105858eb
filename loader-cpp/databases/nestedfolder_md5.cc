#include "databases/nestedfolder_md5.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace opjoule {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

// RFC 1321, 3.4: the integer part of 2^32 times |sin(i)|, i in radians from 1.
struct Sines {
  uint32_t at[64];
  Sines() {
    for (int i = 0; i < 64; ++i)
      at[i] = static_cast<uint32_t>(std::fabs(std::sin(i + 1.0)) * 4294967296.0);
  }
};

uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d) {
  switch (round) {
    case 0:
      return (b & c) | (~b & d);
    case 1:
      return (d & b) | (~d & c);
    case 2:
      return b ^ c ^ d;
    default:
      return c ^ (b | ~d);
  }
}

int word_of(int round, int i) {
  switch (round) {
    case 0:
      return i;
    case 1:
      return (5 * i + 1) % 16;
    case 2:
      return (3 * i + 5) % 16;
    default:
      return 7 * i % 16;
  }
}

void add_block(const char* block, uint32_t state[4]) {
  static const Sines sines;
  uint32_t words[16];
  std::memcpy(words, block, kBlockBytes);  // every board we build for is little endian, as MD5 is
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  for (int i = 0; i < 64; ++i) {
    const int round = i / 16;
    const uint32_t sum = a + mix(round, b, c, d) + words[word_of(round, i)] + sines.at[i];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[round][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

}  // namespace

void md5_hex(std::string_view message, char* digits) {
  uint32_t state[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const uint64_t bits = message.size() * 8;
  for (; message.size() >= kBlockBytes; message.remove_prefix(kBlockBytes))
    add_block(message.data(), state);
  char last[2 * kBlockBytes] = {};  // what is left, one bit, zeros, and the length in bits
  std::memcpy(last, message.data(), message.size());
  last[message.size()] = '\x80';
  const size_t end = message.size() + 9 <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
  std::memcpy(last + end - sizeof bits, &bits, sizeof bits);
  for (size_t at = 0; at < end; at += kBlockBytes) add_block(last + at, state);
  for (size_t i = 0; i < kMd5Digits / 2; ++i) {
    const auto byte = static_cast<uint8_t>(state[i / 4] >> (8 * (i % 4)));
    digits[2 * i] = "0123456789abcdef"[byte >> 4];
    digits[2 * i + 1] = "0123456789abcdef"[byte & 15];
  }
}

}  // namespace opjoule
