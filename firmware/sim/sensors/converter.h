// The converter inside a power monitor: which channel it integrates, from when to when.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "signal/oscillator.h"

namespace opjoule::rig {

enum class Channel { kShunt, kBus, kTemperature };

/// One entry of a conversion cycle: `averages` conversions, back to back, each of `conversion_s` by
/// the data sheet.
struct ConversionStep {
  Channel channel;
  int averages;
  double conversion_s;
};

/// Runs a cycle of steps over and over (or once, when triggered) without a gap between them, timed
/// by the chip's own oscillator. Lazy: nothing happens until advance() asks for what has ended by
/// then.
class Converter {
 public:
  /// Called for each ended step with its exact bounds in rig time; `last` closes the cycle.
  using OnEnd = std::function<void(const ConversionStep&, double start_s, double end_s, bool last)>;

  Converter(const OscillatorErrors& clock, std::uint64_t seed, OnEnd on_end)
      : clock_(1, clock, seed), on_end_(std::move(on_end)) {}

  /// Abandons the conversion under way and starts the cycle at `start_s`; no steps: idle.
  void restart(std::vector<ConversionStep> steps, bool continuous, double start_s);

  /// Ends every step whose time is up at `now_s`. Does not run past a restart made by on_end.
  void advance(double now_s);

  double step_start_s() const { return start_s_; }
  bool idle() const { return steps_.empty(); }
  /// End of the step under way [s]; meaningful unless idle.
  double step_end_s() const { return end_s_; }

 private:
  void begin_step(double start_s);

  const Oscillator clock_;  ///< counts seconds of the chip's own
  OnEnd on_end_;
  std::vector<ConversionStep> steps_;
  std::size_t index_ = 0;
  bool continuous_ = false;
  double start_s_ = 0, end_s_ = 0;
};

}  // namespace opjoule::rig
