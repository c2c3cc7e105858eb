// What the rig needs of each power monitor chip.
#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "sensors/register_device.h"

namespace opjoule::rig {

class PowerSensor : public RegisterDevice {
 public:
  /// Called at the first read of a measurement result after power-up: the meter begins to sample.
  std::function<void(double now_s)> on_first_sample;

  /// Called at the end of each conversion of the shunt voltage, with its bounds in rig time; by the
  /// INA219 alone.
  std::function<void(double start_s, double end_s)> on_shunt_conversion;

  virtual std::string model() const = 0;
  /// Counts of conversions and reads, a JSON object.
  virtual nlohmann::ordered_json counts() const = 0;

  /// Whether the chip has an ALERT output.
  virtual bool has_alert() const { return false; }
  /// Whether the ALERT output (open drain) pulls its line low at `now_s`.
  virtual bool alert_low(double now_s) { return static_cast<void>(now_s), false; }
  /// Time after which the answer of alert_low may change without a transfer on the bus [s].
  virtual double next_alert_change_s() const { return std::numeric_limits<double>::infinity(); }

 protected:
  void sampled(double now_s) {
    if (on_first_sample) std::exchange(on_first_sample, nullptr)(now_s);
  }
};

}  // namespace opjoule::rig
