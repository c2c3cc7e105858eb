// The temperature of a shunt that its own current heats.
#pragma once

#include "signal/supply.h"

namespace opjoule::rig {

/// How a shunt warms up by its own current, and what that does to its resistance.
struct ShuntHeat {
  double per_k = 0;    ///< relative change of the resistance with its temperature [1/K]
  double k_per_w = 0;  ///< thermal resistance to the room [K/W]
  double tau_s = 1;    ///< thermal time constant
};

/// One thermal resistance and one heat capacity: the rise above the room follows the power in the
/// shunt exponentially. It starts as warm as the first current keeps it: a board has been running
/// before. Times go forward.
class ShuntTemperature {
 public:
  ShuntTemperature(const ShuntHeat& heat, double cold_ohm) : heat_(heat), cold_ohm_(cold_ohm) {}

  /// Resistance over that of the cold shunt, at the middle of [from_s, to_s] in rig time.
  double resistance_factor(const Supply& supply, double from_s, double to_s);

 private:
  void advance(const Supply& supply, double to_s);
  double factor() const { return 1 + heat_.per_k * rise_k_; }
  /// The rise that this mean of the squared current would end at [K].
  double end_k(double square_a2) const { return heat_.k_per_w * square_a2 * cold_ohm_ * factor(); }

  const ShuntHeat heat_;
  const double cold_ohm_;
  double rise_k_ = 0;
  double at_s_ = 0;  ///< until when rise_k_ has been followed
  bool begun_ = false;
};

}  // namespace opjoule::rig
