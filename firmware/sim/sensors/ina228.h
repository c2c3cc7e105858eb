// INA228 power monitor: 20-bit results, hardware charge and energy, and the ALERT output; INA237
// and INA238 (SLYS025A), which are the same with 16-bit results and without accumulators.
// Source: TI SLYS021A (May 2022); section and table numbers in the code are its.
#pragma once

#include "sensors/averaged_channels.h"
#include "sensors/power_sensor.h"

namespace opjoule::rig::ina228 {

/// Powered before the microcontroller. Limits, temperature compensation and the alerts that depend
/// on them are not modelled; the die is always at 25 C. The supply must outlive it.
class Ina228 final : public PowerSensor {
 public:
  /// `number`: 228, 237 or 238.
  Ina228(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed,
         unsigned number = 228);

  std::string model() const override { return "INA" + std::to_string(number_); }
  nlohmann::ordered_json counts() const override;
  bool has_alert() const override { return true; }
  bool alert_low(double now_s) override;
  double next_alert_change_s() const override;
  const AveragedChannels& channels() const { return channels_; }

 protected:
  std::size_t register_bytes(std::uint8_t pointer) const override;
  std::uint64_t read_register(std::uint8_t pointer, double now_s) override;
  void write_register(std::uint8_t pointer, std::uint64_t value, double now_s) override;

 private:
  void reset(double now_s);
  void restart(double now_s);
  double current_of(double shunt_code) const;
  std::uint16_t diagnostics();
  bool has_short_codes() const { return number_ != 228; }
  std::uint64_t code(double value) const;

  const unsigned number_;
  AveragedChannels channels_;
  std::uint16_t config_ = 0, adc_config_ = 0, shunt_cal_ = 0, shunt_tempco_ = 0, alert_ = 0;
  double last_current_ = 0;  // of the last shunt conversion [current codes]
  double charge_ = 0;        // [current codes s]
  double energy_ = 0;        // [power codes s / 16]
};

}  // namespace opjoule::rig::ina228

namespace opjoule::rig {
using ina228::Ina228;
}
