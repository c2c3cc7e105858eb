// Current, voltage and sync edges that arrive while the rig runs, each with its time.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "signal/profile.h"

namespace opjoule::rig {

/// Parses the live input, one line each:
///   p BOARD_NS CURRENT_A VOLTAGE_V   the supply from then on
///   e BOARD_NS LEVEL                 the sync line changes
///   w BOARD_NS                       nothing earlier than this will follow
///   q                                the end
/// board_ns is CLOCK_MONOTONIC of this computer [ns]. Profile time is seconds since epoch_ns(). Not
/// thread-safe; no I/O.
class LiveFeed {
 public:
  explicit LiveFeed(const Feeder& feeder = {}) : profile_(feeder) {}

  struct Edge {
    std::int64_t board_ns;
    bool level;
  };

  /// Takes any part of the input; keeps an unfinished line for the next call.
  /// Throws RigError on a malformed line.
  void take(std::string_view text);

  /// Everything up to this board time has been simulated: earlier rows come too late.
  void simulated_until(std::int64_t board_ns) { simulated_ns_ = board_ns; }

  const Profile& profile() const { return profile_; }
  Profile& profile() { return profile_; }
  std::deque<Edge>& edges() { return edges_; }

  /// board_ns of profile time 0: that of the first line with a time; 0 before it.
  std::int64_t epoch_ns() const { return epoch_ns_; }
  double profile_s(std::int64_t board_ns) const {
    return static_cast<double>(board_ns - epoch_ns_) * 1e-9;
  }
  bool started() const { return epoch_ns_ != 0; }
  std::int64_t watermark_ns() const { return watermark_ns_; }
  bool ended() const { return ended_; }
  /// Rows and edges that came after their time was simulated; they are left out.
  std::uint64_t late_rows() const { return late_rows_; }

 private:
  void take_line(std::string_view line);
  bool too_late(std::int64_t board_ns);
  void add_edge(std::int64_t board_ns, bool level);

  Profile profile_;
  std::deque<Edge> edges_;  // in order of time; taken from the front by the rig
  std::string partial_;
  std::int64_t epoch_ns_ = 0, watermark_ns_ = 0, simulated_ns_ = 0;
  std::uint64_t late_rows_ = 0;
  bool ended_ = false;
};

}  // namespace opjoule::rig
