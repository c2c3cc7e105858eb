// The sync line: the wire to the meter by which both clocks see the same instants.
#pragma once

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

// Toggles the line at phase boundaries, and at pseudo-random intervals of 0.5 to 1.5 s in between,
// which no other series of edges matches by chance. Starts at level 0. Thread safety: toggle() from
// any thread.
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
  Random random_;
  int level_ = 0;
  uint64_t edges_ = 0;
  bool stopping_ = false;
  Status status_;
  std::thread toggler_;
};

}  // namespace opjoule
