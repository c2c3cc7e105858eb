// The sync line: the wire to the meter by which both clocks see the same instants.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "board/event_file.h"
#include "board/sync_carrier.h"
#include "loader/status.h"
#include "workload/random.h"

namespace opjoule {

// Pauses between toggles: pseudo-random, 0.5 to 1.5 s, so that a stretch of edges fits only one
// place of what the meter saw. They depend on the start too: the loaders of one run share a seed,
// and equal pauses would make the edges of one look like those of another.
class ToggleSchedule {
 public:
  ToggleSchedule(uint64_t seed, int64_t start_board_ns);
  std::chrono::microseconds next();

 private:
  Random random_;
};

// Toggles the line at phase boundaries, and by a schedule in between. Starts at level 0. Thread
// safety: toggle() from any thread.
class SyncLine {
 public:
  // `events` may be null, and outlives this object.
  SyncLine(std::unique_ptr<SyncCarrier> carrier, EventFile* events, uint64_t seed);
  ~SyncLine();
  void toggle();
  // Stops the toggling; gives the carrier's first failure.
  Status stop();
  [[nodiscard]] uint64_t edges() const;

 private:
  void toggle_locked();
  void toggle_loop();

  std::unique_ptr<SyncCarrier> carrier_;
  EventFile* events_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  ToggleSchedule schedule_;
  int level_ = 0;
  uint64_t edges_ = 0;
  bool stopping_ = false;
  Status status_;
  std::thread toggler_;
};

}  // namespace opjoule
