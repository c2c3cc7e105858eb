// INA219 power monitor: registers, conversion timing and quantisation.
// Source: TI SBOS448G (December 2015); section numbers in the code are its. Assumptions that the
// data sheet leaves open are listed in docs/reference/rig-sim.md.
#pragma once

#include <optional>
#include <vector>

#include "sensors/converter.h"
#include "sensors/imperfections.h"
#include "sensors/power_sensor.h"
#include "sensors/sample_count.h"
#include "signal/supply.h"

namespace opjoule::rig::ina219 {

/// Powered before the microcontroller: converting in its default mode from rig time 0. The supply
/// must outlive it.
class Ina219 final : public PowerSensor {
 public:
  Ina219(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed);

  std::string model() const override { return "INA219"; }
  nlohmann::ordered_json counts() const override;
  const SampleCount& shunt_count() const { return shunt_count_; }
  const SampleCount& bus_count() const { return bus_count_; }

 protected:
  std::size_t register_bytes(std::uint8_t) const override { return 2; }
  std::uint64_t read_register(std::uint8_t pointer, double now_s) override;
  void write_register(std::uint8_t pointer, std::uint64_t value, double now_s) override;

 private:
  struct AdcSetting {
    int bits, averages;
    double conversion_s;
  };
  static AdcSetting adc_setting(unsigned field);

  void change_mode(std::uint16_t value, double now_s);
  void configure(std::uint16_t value, double start_s);
  void conversion_ended(const ConversionStep& step, double start_s, double end_s, bool last);
  long mean_code(const ConversionStep& step, double start_s, double end_s, const AdcSetting& adc);
  long code_of(Channel channel, double from_s, double to_s, int bits);
  void multiply();
  std::uint16_t bus_register();

  const Supply& supply_;
  const Imperfections imperfections_;
  ShuntPath shunt_path_;
  Converter converter_;
  SampleCount shunt_count_, bus_count_;

  std::uint16_t configuration_ = 0;
  std::optional<std::uint16_t> next_configuration_;  // until the conversion under way has ended
  double next_from_s_ = 0;                           // and this time has come
  std::uint16_t calibration_ = 0;
  std::int16_t shunt_code_ = 0;
  std::uint16_t bus_code_ = 0;
  std::int16_t current_code_ = 0;
  std::uint16_t power_code_ = 0;
  bool conversion_ready_ = false;
  bool overflow_ = false;
  std::uint64_t polls_not_ready_ = 0;
  std::uint64_t aborted_ = 0;  // conversions cut short by a new configuration
  std::uint64_t shunt_saturated_ = 0;
};

}  // namespace opjoule::rig::ina219

namespace opjoule::rig {
using ina219::Ina219;
}
