#include "signal/profile.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "errors.h"
#include "signal/csv.h"

namespace opjoule::rig {

Integrals operator-(const Integrals& a, const Integrals& b) {
  return {a.charge_c - b.charge_c, a.volt_seconds - b.volt_seconds, a.energy_j - b.energy_j,
          a.square_a2s - b.square_a2s};
}

Profile Profile::read(const std::string& path, const Feeder& feeder) {
  const auto rows = read_csv(path, {"time_s", "current_a", "voltage_v"});
  if (rows.size() < 2)
    throw RigError(path + ": a profile needs at least two rows, a first step and the end");
  Profile profile(feeder);
  for (const auto& row : rows) {
    if (row[0] < 0 || (!profile.empty() && row[0] <= profile.last_s()))
      throw RigError(path + ": time_s " + std::to_string(row[0]) +
                     " is out of order; times start at 0 or later and increase");
    profile.add(row[0], row[1], row[2]);
  }
  profile.end_at(profile.last_s());
  return profile;
}

/// Integral of the voltage at the board from the row's time on while `current_a` flows.
double Profile::volt_seconds(const Row& row, double current_a, double time_s) const {
  double sum = (row.voltage_v - current_a * feeder_.resistance_ohm) * (time_s - row.time_s);
  if (feeder_.ripple_v != 0) {
    const double omega = 2 * std::numbers::pi * feeder_.ripple_hz;
    sum += feeder_.ripple_v / omega * (std::cos(omega * row.time_s) - std::cos(omega * time_s));
  }
  return sum;
}

Integrals Profile::advanced(const Row& row, double time_s) const {
  const double volts_s = volt_seconds(row, row.current_a, time_s);
  Integrals sum = row.before;
  sum.charge_c += row.current_a * (time_s - row.time_s);
  sum.volt_seconds += volts_s;
  sum.energy_j += row.current_a * volts_s;
  sum.square_a2s += row.current_a * row.current_a * (time_s - row.time_s);
  return sum;
}

void Profile::add(double time_s, double current_a, double voltage_v) {
  auto at = std::lower_bound(rows_.begin(), rows_.end(), time_s,
                             [](const Row& row, double time) { return row.time_s < time; });
  if (at != rows_.end() && at->time_s == time_s) {
    at->current_a = current_a;
    at->voltage_v = voltage_v;
  } else {
    at = rows_.insert(at, Row{time_s, current_a, voltage_v, {}});
    if (at == rows_.begin() && rows_.size() > 1) at->before = {};
  }
  for (auto row = std::max(at, rows_.begin() + 1); row < rows_.end(); ++row)
    row->before = advanced(*(row - 1), row->time_s);
}

void Profile::end_at(double time_s) {
  while (!rows_.empty() && rows_.back().time_s > time_s) rows_.pop_back();
  if (!rows_.empty()) add(time_s, 0, rows_.back().voltage_v);
}

void Profile::forget_before(double time_s) {
  for (; rows_.size() > 1 && rows_[1].time_s <= time_s; rows_.pop_front())
    if (on_forget) on_forget(rows_.front().time_s, rows_.front().before);
}

double Profile::limited_charge_c(double from_s, double to_s, double least_a, double most_a) const {
  auto row = std::upper_bound(rows_.begin(), rows_.end(), from_s,
                              [](double time, const Row& each) { return time < each.time_s; });
  double charge_c = 0;
  double current_a = row == rows_.begin() ? 0 : (row - 1)->current_a;
  for (double at_s = from_s; at_s < to_s; ++row) {
    const double until_s = row == rows_.end() ? to_s : std::min(row->time_s, to_s);
    charge_c += std::clamp(current_a, least_a, most_a) * (until_s - at_s);
    if (row == rows_.end()) break;
    at_s = until_s;
    current_a = row->current_a;
  }
  return charge_c;
}

Integrals Profile::until(double time_s) const {
  if (rows_.empty()) return {};
  const auto after =
      std::upper_bound(rows_.begin(), rows_.end(), time_s,
                       [](double time, const Row& row) { return time < row.time_s; });
  if (after != rows_.begin()) return advanced(*(after - 1), time_s);
  Integrals early = rows_.front().before;
  early.volt_seconds += volt_seconds(rows_.front(), 0, time_s);
  return early;
}

}  // namespace opjoule::rig
