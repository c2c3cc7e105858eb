// Background activity of an engine or of the board, with start and end on the board clock.
//
// Thread safety: EventSink's functions may be called from any thread, engine threads included; they
// do not block on I/O.
#pragma once

#include <cstdint>
#include <string_view>

namespace opjoule {

enum class EventKind { kFlush, kCompaction, kCheckpoint, kSync, kStall };

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Something of a kind that may last has begun; add() with the same start says when it ended.
  virtual void begin(EventKind kind, int64_t start_board_ns) = 0;
  // start_board_ns, end_board_ns: CLOCK_MONOTONIC [ns]; detail: short ASCII text, may be empty.
  virtual void add(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
                   std::string_view detail) = 0;
};

}  // namespace opjoule
