// The sync line, at pin D8 (PB0 and input capture of timer 1) or at D2 (PD2 and its interrupt).
#pragma once

#include <deque>
#include <functional>

#include "mcu/mcu.h"
#include "options.h"

namespace opjoule::rig {

/// Plays edges into the microcontroller with a time resolution of one cycle.
class SyncInput {
 public:
  /// `on_played` gets each edge's cycle and level when it has reached the pin.
  SyncInput(Mcu& mcu, SyncPin pin, std::function<void(std::uint64_t cycle, bool level)> on_played);

  /// Queues an edge at a cycle not before the last one queued.
  void add(std::uint64_t cycle, bool level);
  /// Nothing drives the line from now on: it picks up `hz` edges a second, unless the program's
  /// pull-up holds it. D8 alone.
  void open_line(double hz);
  std::size_t waiting() const { return edges_.size(); }

 private:
  struct Edge {
    std::uint64_t cycle;
    bool level;
  };
  void play(std::uint64_t due);
  void capture(std::uint64_t cycle, bool level);
  void arm();
  void read_at_d8();
  void detach_pin();
  void drive_d2();
  bool pulled_up() const;
  void pick_up(std::uint64_t due);

  Mcu& mcu_;
  SyncPin pin_;
  std::function<void(std::uint64_t, bool)> on_played_;
  CycleTimer timer_;
  CycleTimer pick_up_timer_;
  std::deque<Edge> edges_;
  bool level_ = false;
  std::uint64_t pick_up_cycles_ = 0;  // between two edges of an open line; 0: it is driven
};

}  // namespace opjoule::rig
