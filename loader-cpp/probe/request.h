// One line that the host sends to `probe serve`, except the clock: docs/reference/probe.md.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "loader/status.h"

namespace opjoule {

enum class RequestKind { kPending, kFiles, kSignature, kSteering, kDrain };

struct Request {
  RequestKind kind = RequestKind::kPending;
  std::string name;     // of the files to come
  std::string bits;     // of a signature: zeros and ones
  uint32_t bit_ms = 0;  // 1 to 10000
  double limit_s = 0;   // of a drain: 0 to 86400
};

// kBadInput says what was expected, without repeating the line.
Status parse_request(const std::string& line, Request* out);

}  // namespace opjoule
