// The true current and voltage of the board over time, and their exact integrals.
#pragma once

#include <deque>
#include <functional>
#include <string>

namespace opjoule::rig {

/// Integrals from the start of time, so that a difference of two is the integral between them.
struct Integrals {
  double charge_c = 0;      ///< of current [A s]
  double volt_seconds = 0;  ///< of voltage [V s]
  double energy_j = 0;      ///< of current times voltage [J]
  double square_a2s = 0;    ///< of the current's square [A^2 s]
};

Integrals operator-(const Integrals& a, const Integrals& b);

/// What lies between a profile's voltage and the board: a series resistance, and a ripple that adds
/// amplitude * sin(2 pi * frequency * profile time). The board's current is the profile's whatever
/// its voltage.
struct Feeder {
  double resistance_ohm = 0;
  double ripple_v = 0;  ///< amplitude
  double ripple_hz = 100;
};

/// A step function of time: each row holds until the next. Before the first row and from the end on
/// no current flows; the voltage stays that of the nearest row. What is integrated is the voltage
/// at the board, behind the feeder. Not thread-safe.
class Profile {
 public:
  explicit Profile(const Feeder& feeder = {}) : feeder_(feeder) {}

  /// Reads `time_s,current_a,voltage_v`; the last row's time is the end. Throws RigError when the
  /// file is unreadable, has fewer than two rows, or its times do not increase from >= 0.
  static Profile read(const std::string& path, const Feeder& feeder = {});

  /// Adds a row; a row with a time before the last one is inserted in its place, which takes time
  /// for each row after it. A second row of the same time replaces the first.
  void add(double time_s, double current_a, double voltage_v);

  /// Ends the profile: rows from `time_s` on are dropped and no current flows from there.
  void end_at(double time_s);

  /// Drops rows that hold only before `time_s`; integrals from there on stay exact.
  void forget_before(double time_s);

  /// Called with each row that is dropped as old, and the integrals up to it.
  std::function<void(double time_s, const Integrals& until)> on_forget;

  /// Time of the oldest row that is kept [s]; 0 without rows.
  double first_s() const { return rows_.empty() ? 0 : rows_.front().time_s; }

  /// Time of the last row [s]; 0 without rows.
  double last_s() const { return rows_.empty() ? 0 : rows_.back().time_s; }
  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }

  /// Integral of the current over [from_s, to_s] with what is beyond [least_a, most_a] cut off
  /// [A s]: what a converter integrates whose input cannot follow farther.
  double limited_charge_c(double from_s, double to_s, double least_a, double most_a) const;

  /// Integrals from the first row ever added up to `time_s`; exact for the step function.
  Integrals until(double time_s) const;

 private:
  struct Row {
    double time_s, current_a, voltage_v;  // voltage before the feeder
    Integrals before;                     // integrals up to time_s
  };
  Integrals advanced(const Row& row, double time_s) const;
  double volt_seconds(const Row& row, double current_a, double time_s) const;
  Feeder feeder_;
  std::deque<Row> rows_;
};

}  // namespace opjoule::rig
