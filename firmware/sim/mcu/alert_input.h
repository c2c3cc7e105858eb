// The sensors' ALERT line at pin D2 (PD2, INT0): open drain, pulled up, low while any sensor pulls
// it.
#pragma once

#include <functional>
#include <vector>

#include "mcu/mcu.h"
#include "sensors/power_sensor.h"

namespace opjoule::rig {

/// The sensors must outlive it. Call refresh() after anything on the bus.
class AlertInput {
 public:
  AlertInput(Mcu& mcu, std::vector<PowerSensor*> sensors);
  void refresh(std::uint64_t cycle);

 private:
  void drive(bool high);

  Mcu& mcu_;
  std::vector<PowerSensor*> sensors_;
  CycleTimer timer_;
  bool high_ = false;
};

}  // namespace opjoule::rig
