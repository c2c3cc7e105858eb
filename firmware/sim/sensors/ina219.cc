#include "sensors/ina219.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace opjoule::rig::ina219 {
namespace {

constexpr std::uint16_t kPowerOnConfiguration = 0x399F;  // 8.6.2.1
constexpr std::uint16_t kReset = 0x8000;
constexpr double kShuntStep_v = 10e-6;  // 8.6.3.1
constexpr double kBusStep_v = 4e-3;     // 8.6.3.2
constexpr double kPowerUp_s = 40e-6;    // 8.4, recovery from power-down

enum Register : std::uint8_t { kConfiguration, kShunt, kBus, kPower, kCurrent, kCalibration };

constexpr unsigned mode_of(std::uint16_t configuration) { return configuration & 7u; }
constexpr unsigned shunt_adc_of(std::uint16_t configuration) { return configuration >> 3 & 15u; }
constexpr unsigned bus_adc_of(std::uint16_t configuration) { return configuration >> 7 & 15u; }
/// Mode 0 is power-down, 4 is ADC off; in both nothing is converted (table 6).
constexpr bool converts(unsigned mode) { return (mode & 3u) != 0; }

}  // namespace

Ina219::Ina219(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed)
    : supply_(supply),
      imperfections_(imperfections),
      shunt_path_(imperfections, seed),
      converter_(imperfections.clock, seed,
                 [this](const ConversionStep& step, double start_s, double end_s, bool last) {
                   conversion_ended(step, start_s, end_s, last);
                 }) {
  configure(kPowerOnConfiguration, 0);
}

/// Table 5: resolution or number of averages, and the typical time of one conversion.
Ina219::AdcSetting Ina219::adc_setting(unsigned field) {
  constexpr double kTime_s[] = {84e-6, 148e-6, 276e-6, 532e-6};
  if (field & 8u) return {12, 1 << (field & 7u), kTime_s[3]};
  const unsigned resolution = field & 3u;
  return {static_cast<int>(9 + resolution), 1, kTime_s[resolution]};
}

/// Writing the mode clears the flag at once (8.6.3.2, condition 1), whatever becomes of the
/// conversion under way.
void Ina219::change_mode(std::uint16_t value, double now_s) {
  const bool converting = !converter_.idle() && now_s > converter_.step_start_s();
  if (converts(mode_of(value)) && imperfections_.ready_flag != ReadyFlag::kNeverCleared)
    conversion_ready_ = false;
  const bool waits = converting && imperfections_.mode_change == ModeChange::kFinishes;
  if (waits && !(value & kReset)) {
    next_configuration_ = value;
    next_from_s_ = now_s + imperfections_.start_delay_s;
    return;
  }
  if (converting) ++aborted_;
  const bool wakes = !converts(mode_of(configuration_));
  configure(value, now_s + imperfections_.start_delay_s + (wakes ? kPowerUp_s : 0));
}

void Ina219::configure(std::uint16_t value, double start_s) {
  if (value & kReset) {
    value = kPowerOnConfiguration;
    calibration_ = power_code_ = bus_code_ = 0;
    shunt_code_ = current_code_ = 0;
    overflow_ = false;
  }
  configuration_ = value;
  next_configuration_.reset();
  const unsigned mode = mode_of(value);
  std::vector<ConversionStep> steps;
  const auto add = [&](Channel channel, unsigned field) {
    const auto adc = adc_setting(field);
    steps.push_back({channel, adc.averages, adc.conversion_s});
  };
  if (mode & 1u) add(Channel::kShunt, shunt_adc_of(value));
  if (mode & 2u) add(Channel::kBus, bus_adc_of(value));
  shunt_count_.restarted();
  bus_count_.restarted();
  converter_.restart(steps, mode & 4u, start_s);
}

long Ina219::code_of(Channel channel, double from_s, double to_s, int bits) {
  const long coarse = 1L << (12 - bits);  // codes that one step of a lower resolution spans
  if (channel == Channel::kBus) {
    const long full_scale = configuration_ & 0x2000 ? 8000 : 4000;
    const double volts = bus_converter_v(imperfections_, supply_.mean_voltage_v(from_s, to_s));
    return coarse * quantised(volts, kBusStep_v * coarse, 0, full_scale / coarse,
                              imperfections_.quantisation);
  }
  const long full_scale = 4000L << (configuration_ >> 11 & 3u);
  const double volts = shunt_path_.converter_v(supply_, from_s, to_s, -full_scale * kShuntStep_v,
                                               full_scale * kShuntStep_v);
  return coarse * quantised(volts, kShuntStep_v * coarse, -full_scale / coarse, full_scale / coarse,
                            imperfections_.quantisation);
}

long Ina219::mean_code(const ConversionStep& step, double start_s, double end_s,
                       const AdcSetting& adc) {
  const double conversion_s = (end_s - start_s) / step.averages;
  long sum = 0;
  for (int i = 0; i < step.averages; ++i)
    sum += code_of(step.channel, start_s + i * conversion_s, start_s + (i + 1) * conversion_s,
                   adc.bits);
  const double mean = static_cast<double>(sum) / step.averages;
  return std::lround(whole(mean, imperfections_.quantisation));
}

void Ina219::conversion_ended(const ConversionStep& step, double start_s, double end_s, bool last) {
  if (step.channel == Channel::kShunt) {
    if (on_shunt_conversion) on_shunt_conversion(start_s, end_s);
    const long code = mean_code(step, start_s, end_s, adc_setting(shunt_adc_of(configuration_)));
    if (std::abs(code) >= 4000L << (configuration_ >> 11 & 3u)) ++shunt_saturated_;
    shunt_code_ = static_cast<std::int16_t>(code);
    shunt_count_.converted();
  } else {
    bus_code_ = static_cast<std::uint16_t>(
        mean_code(step, start_s, end_s, adc_setting(bus_adc_of(configuration_))));
    bus_count_.converted();
  }
  if (last) {
    multiply();
    conversion_ready_ = imperfections_.ready_flag != ReadyFlag::kNeverSet;
  }
  if (next_configuration_) configure(*next_configuration_, std::max(end_s, next_from_s_));
}

/// Current and power from the calibration register, equations 4 and 5 of 8.5.2.
void Ina219::multiply() {
  const long current = static_cast<long>(shunt_code_) * calibration_ / 4096;
  const long power = std::abs(current) * bus_code_ / 5000;
  overflow_ = std::abs(current) > 32767 || power > 65535;
  current_code_ = static_cast<std::int16_t>(std::clamp(current, -32768L, 32767L));
  power_code_ = static_cast<std::uint16_t>(std::min(power, 65535L));
}

/// A read counts as one of a result only if the ready bit is set and the bus is being converted;
/// otherwise it is a poll of the bit.
std::uint16_t Ina219::bus_register() {
  if (!conversion_ready_)
    ++polls_not_ready_;
  else if (mode_of(configuration_) & 2u)
    bus_count_.read();
  return static_cast<std::uint16_t>(bus_code_ << 3 | (conversion_ready_ ? 2 : 0) |
                                    (overflow_ ? 1 : 0));
}

std::uint64_t Ina219::read_register(std::uint8_t pointer, double now_s) {
  converter_.advance(now_s - imperfections_.latch_early_s);
  switch (pointer) {
    case kConfiguration:
      return next_configuration_.value_or(configuration_);
    case kShunt:
      shunt_count_.read();
      sampled(now_s);
      return static_cast<std::uint16_t>(shunt_code_);
    case kBus:
      return bus_register();
    case kPower:
      // 8.6.3.2, condition 2
      if (imperfections_.ready_flag == ReadyFlag::kAsStated) conversion_ready_ = false;
      return power_code_;
    case kCurrent:
      return static_cast<std::uint16_t>(current_code_);
    case kCalibration:
      return calibration_;
    default:
      return 0xFFFF;
  }
}

void Ina219::write_register(std::uint8_t pointer, std::uint64_t value, double now_s) {
  converter_.advance(now_s);
  if (pointer == kConfiguration) change_mode(static_cast<std::uint16_t>(value), now_s);
  if (pointer == kCalibration) calibration_ = static_cast<std::uint16_t>(value & 0xFFFE);
}

nlohmann::ordered_json Ina219::counts() const {
  return {{"shunt", shunt_count_.to_json()},
          {"bus", bus_count_.to_json()},
          {"polls_not_ready", polls_not_ready_},
          {"aborted", aborted_},
          {"shunt_saturated", shunt_saturated_}};
}

}  // namespace opjoule::rig::ina219
