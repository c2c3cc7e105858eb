// INA226 power monitor: registers, conversion timing, averaging and the ALERT output.
// Source: TI SBOS547B (September 2024); section and table numbers in the code are its.
#pragma once

#include "sensors/averaged_channels.h"
#include "sensors/power_sensor.h"

namespace opjoule::rig {

/// Powered before the microcontroller. Alert functions other than conversion ready are not
/// modelled. The supply must outlive it.
class Ina226 final : public PowerSensor {
 public:
  Ina226(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed);

  std::string model() const override { return "INA226"; }
  nlohmann::ordered_json counts() const override;
  bool has_alert() const override { return true; }
  bool alert_low(double now_s) override;
  double next_alert_change_s() const override;
  const AveragedChannels& channels() const { return channels_; }

 protected:
  std::size_t register_bytes(std::uint8_t) const override { return 2; }
  std::uint64_t read_register(std::uint8_t pointer, double now_s) override;
  void write_register(std::uint8_t pointer, std::uint64_t value, double now_s) override;

 private:
  void configure(std::uint16_t value, double now_s);
  void results();
  std::uint16_t mask_enable();

  AveragedChannels channels_;
  std::uint16_t configuration_ = 0, calibration_ = 0, mask_ = 0, alert_limit_ = 0, power_code_ = 0;
  std::int16_t current_code_ = 0;
  bool overflow_ = false;
};

}  // namespace opjoule::rig
