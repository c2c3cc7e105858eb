// The sync line: the wire to the meter on which both clocks see the same edges.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "board/sync_carrier.h"
#include "loader/random.h"
#include "loader/status.h"

namespace opjoule {

// Pauses between toggles: pseudo-random, 0.5 to 1.5 s, so that a series of edges matches what the
// meter saw in one place only. They also depend on the start: programs of one measurement share a
// seed, and with equal pauses the edges of one could be taken for those of another.
class ToggleSchedule {
 public:
  ToggleSchedule(uint64_t seed, int64_t start_board_ns);
  std::chrono::microseconds next();

 private:
  Random random_;
};

// Toggles the line when asked to, and by a schedule in between. Starts from the level at which the
// line was found, so that every change on the wire is reported as an edge. Thread safety: toggle()
// and edges() from any thread.
class SyncLine {
 public:
  // on_edge is called for each edge, on_failure for the carrier's first failure; one at a time.
  // They must not call this object.
  SyncLine(std::unique_ptr<SyncCarrier> carrier, std::function<void(const SyncEdge&)> on_edge,
           std::function<void(const Status&)> on_failure, uint64_t seed);
  ~SyncLine();
  void toggle();
  // Stops the toggling; gives the carrier's first failure.
  Status stop();
  [[nodiscard]] uint64_t edges() const;

 private:
  void toggle_locked();
  void toggle_loop();

  std::unique_ptr<SyncCarrier> carrier_;
  std::function<void(const SyncEdge&)> on_edge_;
  std::function<void(const Status&)> on_failure_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  ToggleSchedule schedule_;
  int level_;
  uint64_t edges_ = 0;
  bool stopping_ = false;
  Status status_;
  std::thread toggler_;
};

}  // namespace opjoule
