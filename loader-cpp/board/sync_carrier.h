// A carrier sets the sync line's level and says when: `gpio:GPIO17` drives a pin through Linux,
// `virtual:PATH` writes "board_ns level" lines for the simulated rig.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "loader/status.h"

namespace opjoule {

struct SyncEdge {
  int64_t board_ns = 0;
  double u_ns = 0;  // standard uncertainty
  int level = 0;
};

// Thread safety: none; SyncLine takes care of it.
class SyncCarrier {
 public:
  virtual ~SyncCarrier() = default;
  // The level at which the line was found, and which it keeps until set() is called. Empty if the
  // carrier cannot tell; a GPIO line is then driven low.
  [[nodiscard]] virtual std::optional<int> found_level() const { return std::nullopt; }
  // Sets the line; `edge` says when it changed.
  virtual Status set(int level, SyncEdge* edge) = 0;
  // kBadInput names what is wrong with the carrier's text, or the device.
  static Status open(const std::string& text, std::unique_ptr<SyncCarrier>* out);
};

}  // namespace opjoule
