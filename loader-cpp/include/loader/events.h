// Background activity of an engine or of the board, with start and end on the board clock.
//
// Thread safety: EventSink's functions may be called from any thread, engine threads included; they
// do not block on I/O.
#pragma once

#include <cstdint>
#include <string_view>

#include "loader/board_clock.h"

namespace opjoule {

enum class EventKind { kFlush, kCompaction, kCheckpoint, kSync, kStall };

class EventSink {
 public:
  virtual ~EventSink() = default;
  // Something of a kind has begun; add() with the same kind and start says when it ended.
  virtual void begin(EventKind kind, int64_t start_board_ns) = 0;
  // start_board_ns, end_board_ns: CLOCK_MONOTONIC [ns]; detail: short ASCII text, may be empty.
  virtual void add(EventKind kind, int64_t start_board_ns, int64_t end_board_ns,
                   std::string_view detail) = 0;
};

// Does `work`, and gives what it gives; `events`, which may be null, has its begin and its end.
template <typename Work>
auto timed(EventSink* events, EventKind kind, std::string_view detail, Work work) {
  if (events == nullptr) return work();
  const int64_t start_board_ns = board_ns();
  events->begin(kind, start_board_ns);
  auto result = work();
  events->add(kind, start_board_ns, board_ns(), detail);
  return result;
}

}  // namespace opjoule
