// The way from the microcontroller's UART to the host's serial port: bytes may be lost, the others
// are passed on in bunches.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "link/pty_link.h"

namespace opjoule::rig {

/// Collects sent bytes and passes them on in bunches, as a USB serial adapter does: at the end of a
/// frame (a zero byte), when many are waiting, or when the first has waited its latency.
class HostPort {
 public:
  struct Bunching {
    std::size_t bytes;  ///< pass on when so many wait
    double latency_s;   ///< or when the first has waited so long, in rig time
    bool at_frame_end;  ///< or when the last byte is zero
  };
  /// `drop_rate`: probability that a byte to the host is lost.
  HostPort(PtyLink& link, double drop_rate, std::uint64_t seed, Bunching bunching)
      : link_(link), drop_rate_(drop_rate), random_(seed), bunching_(bunching) {}

  void push(std::uint8_t byte, double now_s);
  /// Hands on what is due at `now_s`, or all; returns whether there was something.
  bool hand_on(double now_s, const volatile int& stop, bool all = false);

  /// The last byte ended a frame.
  bool at_frame_end() const { return last_ == 0; }

  std::uint64_t dropped() const { return dropped_; }

 private:
  PtyLink& link_;
  double drop_rate_;
  std::mt19937_64 random_;
  Bunching bunching_;
  std::vector<std::uint8_t> waiting_;
  double first_s_ = 0;
  std::uint8_t last_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace opjoule::rig
