// A clock that is not exact: off from the start, warming up, wandering.
#pragma once

#include <array>
#include <cstdint>

namespace opjoule::rig {

/// How the rate of an oscillator deviates from its nominal value; positive is fast.
struct OscillatorErrors {
  double error_ppm = 0;     ///< when it starts
  double warmup_ppm = 0;    ///< by how much it has moved when warm
  double warmup_tau_s = 1;  ///< time constant of that, above 0
  double wander_ppm = 0;  ///< greatest further deviation: three sines with periods of 10 min to 1 h
};

/// Converts times to the counts of an oscillator that runs from time 0, and back. Counts grow with
/// time: errors must add up to less than one million ppm. Exact integrals of the rate, no steps.
/// For one thread.
class Oscillator {
 public:
  /// `seed` chooses periods and phases of the wander.
  Oscillator(double nominal_hz, const OscillatorErrors& errors, std::uint64_t seed);

  /// Counts since time 0 at a true time [s].
  double count_at(double time_s) const;
  /// True time [s] of a count.
  double time_s(double count) const;
  /// Rate [Hz] at a true time.
  double hz_at(double time_s) const;

 private:
  struct Sine {
    double amplitude, omega, phase;
  };
  double nominal_hz_, steady_rate_, warmup_, tau_s_;
  std::array<Sine, 3> wander_;
  bool drifts_;
  /// The last moment asked for, close to which the next one lies.
  mutable double known_s_ = 0, known_count_ = 0, known_hz_;
};

}  // namespace opjoule::rig
