#include "sensors/ina226.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace opjoule::rig::ina226 {
namespace {

constexpr std::uint16_t kReset = 0x8000, kConstant = 0x6000, kRange = 0x1000;
constexpr double kPowerUp_s = 40e-6;  // 6.4.1, recovery from power-down
constexpr double kTime_s[] = {140e-6, 204e-6,   332e-6,   588e-6,
                              1.1e-3, 2.116e-3, 4.156e-3, 8.244e-3};  // tables 7-4, 7-5
constexpr int kAverages[] = {1, 4, 16, 64, 128, 256, 512, 1024};      // table 7-3

enum Register : std::uint8_t {
  kConfiguration,
  kShunt,
  kBus,
  kPower,
  kCurrent,
  kCalibration,
  kMaskEnable,
  kAlertLimit,
};

// Mask/enable register, 7.1.7.
constexpr std::uint16_t kAlertOnReady = 0x0400, kReadyFlag = 0x0008, kOverflowFlag = 0x0004,
                        kAlertPolarity = 0x0002, kMaskWritable = 0xFC03;

Imperfections with_own_shunt(Imperfections imperfections, const Ina226Variant& variant) {
  if (variant.own_shunt_ohm <= 0) return imperfections;
  imperfections.shunt_ohm = variant.own_shunt_ohm;
  imperfections.shunt_heat = {};  // inside the chip, and compensated there (SBOS656C, 7.3)
  return imperfections;
}

}  // namespace

Ina226::Ina226(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed,
               const Ina226Variant& variant)
    : variant_(variant), channels_(supply, with_own_shunt(imperfections, variant), seed) {
  channels_.on_results = [this] { results(); };
  configure(variant_.power_on, 0);
}

void Ina226::configure(std::uint16_t value, double now_s) {
  const bool was_down = channels_.plan().round_s() <= 0;
  if (value & kReset) {
    value = variant_.power_on;
    calibration_ = mask_ = alert_limit_ = power_code_ = 0;
    current_code_ = 0;
    overflow_ = false;
  }
  const std::uint16_t constant = variant_.has_range ? kConstant : kConstant | kRange;
  configuration_ = static_cast<std::uint16_t>((value & ~constant) | (variant_.power_on & constant));
  const unsigned mode = value & 7u;
  AveragedChannels::Plan plan;
  plan.shunt = variant_.shunt;
  if (configuration_ & kRange) plan.shunt.step_v /= 4;
  plan.bus = variant_.bus;
  if (mode & 1u) plan.shunt_s = kTime_s[value >> 3 & 7];
  if (mode & 2u) plan.bus_s = kTime_s[value >> 6 & 7];
  plan.averages = kAverages[value >> 9 & 7];
  plan.continuous = mode & 4u;
  if (mode & 3u) channels_.clear_ready();
  channels_.restart(plan, now_s + (was_down && now_s > 0 ? kPowerUp_s : 0));
}

/// Equations 3 and 4 of 6.5.
void Ina226::results() {
  const long current = channels_.shunt_code() * calibration_ / 2048;
  const long power = std::abs(current) * channels_.bus_code() / 20000;
  overflow_ = std::abs(current) > 32767 || power > 65535;
  current_code_ = static_cast<std::int16_t>(std::clamp(current, -32768L, 32767L));
  power_code_ = static_cast<std::uint16_t>(std::min(power, 65535L));
}

/// Reading it clears the conversion ready flag.
std::uint16_t Ina226::mask_enable() {
  const int flags = (channels_.take_ready() ? kReadyFlag : 0) | (overflow_ ? kOverflowFlag : 0);
  return static_cast<std::uint16_t>(mask_ | flags);
}

std::uint64_t Ina226::read_register(std::uint8_t pointer, double now_s) {
  channels_.advance(now_s);
  switch (pointer) {
    case kConfiguration:
      return configuration_;
    case kShunt:
      channels_.shunt_count.read();
      sampled(now_s);
      return static_cast<std::uint16_t>(channels_.shunt_code() << variant_.unused_bits);
    case kBus:
      channels_.bus_count.read();
      return static_cast<std::uint16_t>(channels_.bus_code() << variant_.unused_bits);
    case kPower:
      return power_code_;
    case kCurrent:
      return static_cast<std::uint16_t>(current_code_);
    case kCalibration:
      return calibration_;
    case kMaskEnable:
      return mask_enable();
    case kAlertLimit:
      return alert_limit_;
    default:
      if (pointer == variant_.maker_at) return variant_.manufacturer;
      return pointer == variant_.maker_at + 1 ? variant_.die : 0xFFFF;
  }
}

void Ina226::write_register(std::uint8_t pointer, std::uint64_t value, double now_s) {
  channels_.advance(now_s);
  const auto word = static_cast<std::uint16_t>(value);
  if (pointer == kConfiguration) configure(word, now_s);
  if (pointer == kCalibration) calibration_ = word & 0x7FFF;
  if (pointer == kMaskEnable) mask_ = word & kMaskWritable;
  if (pointer == kAlertLimit) alert_limit_ = word;
}

bool Ina226::alert_low(double now_s) {
  channels_.advance(now_s);
  const bool asserted = (mask_ & kAlertOnReady) && channels_.ready();
  return asserted != static_cast<bool>(mask_ & kAlertPolarity);
}

double Ina226::next_alert_change_s() const {
  return mask_ & kAlertOnReady ? channels_.next_end_s() : PowerSensor::next_alert_change_s();
}

nlohmann::ordered_json Ina226::counts() const { return channels_.counts(); }

}  // namespace opjoule::rig::ina226
