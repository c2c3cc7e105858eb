// The load signature: a busy and idle pattern on all processors that is found again in the power
// trace.
//
// Thread safety: any thread; but only one at a time makes sense.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace opjoule {

struct LoadChange {
  int64_t board_ns = 0;
  double u_ns = 0;  // standard uncertainty
  int level = 0;    // 1: from idle to busy
};

struct LoadSignature {
  int64_t start_board_ns = 0;  // of the first bit
  int64_t end_board_ns = 0;    // of the last one
  std::vector<LoadChange> changes;
};

inline constexpr size_t kSignatureBitsMax = 65535;

// Whether `bits` is a pattern: zeros and ones, 1 to kSignatureBitsMax of them.
bool is_signature(const std::string& bits);

// Plays `bits`, each of bit_ms, between two idle margins; ends after the second. A stop request
// cuts it short.
LoadSignature play_signature(const std::string& bits, uint32_t bit_ms);

}  // namespace opjoule
