// YCSB's key names: "user" and the key number, hashed or as it is, padded with zeros.
//
// Source: YCSB core, Utils.fnvhash64 and CoreWorkload.buildKeyName: FNV-1a 64 over the eight bytes
// of the number, least significant first, then the absolute value as a signed number. Thread
// safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace opjoule {

struct KeyFormat {
  bool hashed = true;         // insertorder
  uint32_t zero_padding = 1;  // digits at least, zeropadding
};

// abs(FNV-1a 64) of a key number.
inline uint64_t key_hash(uint64_t number) {
  constexpr uint64_t kPrime = 1099511628211;
  constexpr uint64_t kPrime3 = kPrime * kPrime * kPrime;  // three zero bytes at once
  uint64_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < 5; ++i, number >>= 8) hash = (hash ^ (number & 0xff)) * kPrime;
  if (number == 0) [[likely]] {
    hash *= kPrime3;
  } else {
    for (int i = 0; i < 3; ++i, number >>= 8) hash = (hash ^ (number & 0xff)) * kPrime;
  }
  return static_cast<int64_t>(hash) < 0 ? 0 - hash : hash;
}

// Replaces `key` by the name of key `number`; no allocation once `key` has grown.
void format_key(uint64_t number, const KeyFormat& format, std::string& key);

}  // namespace opjoule
