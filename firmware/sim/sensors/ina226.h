// INA226 power monitor: registers, conversion timing, averaging and the ALERT output.
// Source: TI SBOS547B (September 2024); section and table numbers in the code are its.
#pragma once

#include "sensors/averaged_channels.h"
#include "sensors/power_sensor.h"

namespace opjoule::rig::ina226 {

/// Of the chips with the registers of an INA226: what distinguishes them.
struct Ina226Variant {
  std::string model = "INA226";
  std::uint16_t manufacturer = 0x5449, die = 0x2260;
  std::uint16_t power_on = 0x4127;  ///< configuration, 7.1.1
  std::uint8_t maker_at = 0xFE;     ///< register of the maker's id; the chip's is the next
  ChannelScale shunt = {2.5e-6, -32768, 32767};  ///< 7.1.2
  ChannelScale bus = {1.25e-3, 0, 32767};        ///< 7.1.3
  unsigned unused_bits = 0;                      ///< below a code in its register
  bool has_range = false;    ///< bit 12 of the configuration: a quarter of the steps
  double own_shunt_ohm = 0;  ///< 0: it has none
};

/// Powered before the microcontroller. Alert functions other than conversion ready are not
/// modelled. The supply must outlive it.
class Ina226 final : public PowerSensor {
 public:
  Ina226(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed,
         const Ina226Variant& variant = {});

  std::string model() const override { return variant_.model; }
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

  const Ina226Variant variant_;
  AveragedChannels channels_;
  std::uint16_t configuration_ = 0, calibration_ = 0, mask_ = 0, alert_limit_ = 0, power_code_ = 0;
  std::int16_t current_code_ = 0;
  bool overflow_ = false;
};

}  // namespace opjoule::rig::ina226

namespace opjoule::rig {
using ina226::Ina226, ina226::Ina226Variant;
}
