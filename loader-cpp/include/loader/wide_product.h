// Products of two 64-bit numbers that need 128 bits, also where the compiler has no such type
// (32-bit boards).
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace opjoule {

// The upper 64 bits of a * b.
inline uint64_t multiply_high(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  __extension__ using uint128 = unsigned __int128;
  return static_cast<uint64_t>((static_cast<uint128>(a) * b) >> 64);
#else
  const uint64_t a_low = a & 0xffffffff, a_high = a >> 32;
  const uint64_t b_low = b & 0xffffffff, b_high = b >> 32;
  const uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  const uint64_t carry = (middle & 0xffffffff) + a_low * b_high;
  return a_high * b_high + (middle >> 32) + (carry >> 32);
#endif
}

// a * b mod n, for a, b < n.
inline uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t n) {
  if (((a | b) >> 32) == 0) return a * b % n;
#ifdef __SIZEOF_INT128__
  __extension__ using uint128 = unsigned __int128;
  return static_cast<uint64_t>(static_cast<uint128>(a) * b % n);
#else
  uint64_t sum = 0;
  for (; b != 0; b >>= 1) {  // doubling, each step reduced without an overflow
    if ((b & 1) != 0) sum = sum >= n - a ? sum - (n - a) : sum + a;
    a = a >= n - a ? a - (n - a) : a + a;
  }
  return sum;
#endif
}

}  // namespace opjoule
