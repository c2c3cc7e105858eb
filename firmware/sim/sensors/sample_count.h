// Whether the firmware read every conversion result exactly once.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace opjoule::rig {

/// Counts for one result register, from the first read on. Conversions that end after the last read
/// do not count as missed: sampling may have stopped.
class SampleCount {
 public:
  /// A new result replaced the old one.
  void converted() {
    ++conversions_;
    if (!sampling_) return;
    if (unread_) ++(unread_before_restart_ ? discarded_ : missed_since_read_);
    unread_ = true;
    unread_before_restart_ = false;
  }

  /// The register was read.
  void read() {
    if (sampling_ && !unread_) ++read_twice_;
    sampling_ = true;
    missed_ += missed_since_read_;
    missed_since_read_ = 0;
    unread_ = unread_before_restart_ = false;
    ++reads_;
  }

  /// The converter was configured again. If reading had stopped before, nothing counts as missed; a
  /// single unread result counts as discarded.
  void restarted() {
    if (missed_since_read_ > 0) sampling_ = unread_ = false;
    missed_since_read_ = 0;
    unread_before_restart_ = unread_;
  }

  std::uint64_t conversions() const { return conversions_; }
  std::uint64_t reads() const { return reads_; }
  std::uint64_t missed() const { return missed_; }
  std::uint64_t read_twice() const { return read_twice_; }
  nlohmann::ordered_json to_json() const;

 private:
  std::uint64_t conversions_ = 0, reads_ = 0, missed_ = 0, read_twice_ = 0;
  std::uint64_t discarded_ = 0, missed_since_read_ = 0;
  bool sampling_ = false, unread_ = false, unread_before_restart_ = false;
};

}  // namespace opjoule::rig
