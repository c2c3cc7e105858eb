// One line that a workload sends to the probe: docs/reference/probe.md, Marks.
//
// Thread safety: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

enum class MarkKind { kPhaseBegin, kPhaseEnd, kOperation, kEvent, kWatch, kUnwatch, kRun, kSync };

struct Mark {
  MarkKind kind = MarkKind::kSync;
  std::string name;      // of a phase or an event
  int64_t start_ns = 0;  // board_ns
  int64_t end_ns = 0;    // board_ns
  std::string detail;    // of an event; of an operation "KIND BYTES ok"
  pid_t pid = 0;         // to watch
};

inline constexpr size_t kMarkBytesMax = 4096;
inline constexpr size_t kMarkNameMax = 63;

// Phases without a time get arrival_board_ns; no time may be later than that. kBadInput says what
// is wrong, without repeating the line.
Status parse_mark(std::string_view line, int64_t arrival_board_ns, Mark* out);

}  // namespace opjoule
