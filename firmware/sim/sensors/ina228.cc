#include "sensors/ina228.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace opjoule::rig::ina228 {
namespace {

constexpr long kHighest16 = 32767, kLowest16 = -32768;
constexpr long kHighest20 = (1L << 19) - 1, kLowest20 = -(1L << 19);
constexpr double kTime_s[] = {50e-6,  84e-6,    150e-6,   280e-6,
                              540e-6, 1.052e-3, 2.074e-3, 4.12e-3};  // table 7-6
constexpr int kAverages[] = {1, 4, 16, 64, 128, 256, 512, 1024};     // table 7-6
constexpr double kBusStep_v = 195.3125e-6;                           // table 8-1
constexpr double kDelayStep_s = 2e-3;                                // table 7-5, CONVDLY

enum Register : std::uint8_t {
  kConfig,
  kAdcConfig,
  kShuntCal,
  kShuntTempco,
  kShunt,
  kBus,
  kTemperature,
  kCurrent,
  kPower,
  kEnergy,
  kCharge,
  kDiagnostics,
  kManufacturerId = 0x3E,
  kDeviceId = 0x3F,
};

constexpr std::uint16_t kReset = 0x8000, kResetAccumulators = 0x4000,
                        kAdcRange = 0x0010;  // table 7-5
// DIAG_ALRT, table 7-16.
constexpr std::uint16_t kAlertOnReady = 0x4000, kAlertPolarity = 0x1000, kReadyFlag = 0x0002,
                        kMemoryOk = 0x0001, kAlertWritable = 0xF000;

/// A signed code of 20 bits in the upper bits of 24.
std::uint64_t in_24_bits(double code) {
  const double limited =
      std::clamp(code, static_cast<double>(kLowest20), static_cast<double>(kHighest20));
  return static_cast<std::uint64_t>(std::lround(limited)) << 4 & 0xFFFFFF;
}

/// The low 40 bits of a sum, as the chip's accumulators roll over.
std::uint64_t in_40_bits(double sum) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(sum))) & 0xFFFFFFFFFF;
}

}  // namespace

Ina228::Ina228(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed,
               unsigned number)
    : number_(number), channels_(supply, imperfections, seed) {
  // 8.1.2: charge after each shunt conversion, energy after each bus conversion with the last
  // current; both over the time of a round by the chip's own clock.
  channels_.on_shunt = [this](long code) {
    last_current_ = current_of(static_cast<double>(code));
    charge_ += last_current_ * channels_.plan().round_s();
  };
  channels_.on_bus = [this](long code) {
    energy_ += std::abs(last_current_) * static_cast<double>(code) / 16384 *
               channels_.plan().round_s() / 16;
  };
  reset(0);
}

void Ina228::reset(double now_s) {
  config_ = 0;
  adc_config_ = 0xFB68;  // table 7-6
  shunt_cal_ = 0x1000;   // table 7-7
  shunt_tempco_ = alert_ = 0;
  charge_ = energy_ = last_current_ = 0;
  restart(now_s);
}

void Ina228::restart(double now_s) {
  const unsigned mode = adc_config_ >> 12;
  AveragedChannels::Plan plan;
  plan.shunt = {config_ & kAdcRange ? 78.125e-9 : 312.5e-9, kLowest20, kHighest20};
  plan.bus = {kBusStep_v, 0, kHighest20};
  if (has_short_codes()) {  // SLYS025A, 7.6.1.4 and 7.6.1.5
    plan.shunt = {config_ & kAdcRange ? 1.25e-6 : 5e-6, kLowest16, kHighest16};
    plan.bus = {3.125e-3, 0, kHighest16};
  }
  if (mode & 1u) plan.bus_s = kTime_s[adc_config_ >> 9 & 7];
  if (mode & 2u) plan.shunt_s = kTime_s[adc_config_ >> 6 & 7];
  if (mode & 4u) plan.temperature_s = kTime_s[adc_config_ >> 3 & 7];
  plan.averages = kAverages[adc_config_ & 7];
  plan.continuous = mode & 8u;
  channels_.clear_ready();
  channels_.restart(plan, now_s + (config_ >> 6 & 0xFF) * kDelayStep_s);
}

/// Current in current codes: SHUNT_CAL = 13107.2e6 CURRENT_LSB R (8.1.2, equation 2) turned round.
/// In the smaller range SHUNT_CAL has to be four times as large, as are the shunt codes: the
/// quotient stays the same.
double Ina228::current_of(double shunt_code) const {
  return shunt_cal_ == 0 ? 0 : shunt_code * 4096 / shunt_cal_;
}

std::uint64_t Ina228::code(double value) const {
  return has_short_codes() ? static_cast<std::uint16_t>(std::lround(value)) : in_24_bits(value);
}

std::size_t Ina228::register_bytes(std::uint8_t pointer) const {
  if (has_short_codes() && pointer != kPower) return 2;
  switch (pointer) {
    case kShunt:
    case kBus:
    case kCurrent:
    case kPower:
      return 3;
    case kEnergy:
    case kCharge:
      return 5;
    default:
      return 2;
  }
}

/// Reading it clears the conversion ready flag.
std::uint16_t Ina228::diagnostics() {
  const int flags = kMemoryOk | (channels_.take_ready() ? kReadyFlag : 0);
  return static_cast<std::uint16_t>(alert_ | flags);
}

std::uint64_t Ina228::read_register(std::uint8_t pointer, double now_s) {
  channels_.advance(now_s);
  const double current = current_of(static_cast<double>(channels_.shunt_code()));
  switch (pointer) {
    case kConfig:
      return config_;
    case kAdcConfig:
      return adc_config_;
    case kShuntCal:
      return shunt_cal_;
    case kShuntTempco:
      return shunt_tempco_;
    case kShunt:
      channels_.shunt_count.read();
      sampled(now_s);
      return code(static_cast<double>(channels_.shunt_code()));
    case kBus:
      channels_.bus_count.read();
      return code(static_cast<double>(channels_.bus_code()));
    case kTemperature:
      return 3200;  // 25 C in steps of 7.8125 mC
    case kCurrent:
      return in_24_bits(current);
    case kPower:
      return static_cast<std::uint64_t>(std::min(
          std::abs(current) * static_cast<double>(channels_.bus_code()) / 16384, 16777215.0));
    case kEnergy:
      return in_40_bits(energy_);
    case kCharge:
      return in_40_bits(charge_);
    case kDiagnostics:
      return diagnostics();
    case kManufacturerId:
      return 0x5449;
    case kDeviceId:
      return number_ == 228 ? 0x2281 : number_ == 237 ? 0x2370 : 0x2381;
    default:
      return 0xFFFF;
  }
}

void Ina228::write_register(std::uint8_t pointer, std::uint64_t value, double now_s) {
  channels_.advance(now_s);
  const auto word = static_cast<std::uint16_t>(value);
  if (pointer == kConfig) {
    if (word & kReset) return reset(now_s);
    if (word & kResetAccumulators) charge_ = energy_ = 0;
    const bool changed = config_ != (word & 0x3FF0);
    config_ = word & 0x3FF0;
    if (changed) restart(now_s);
  }
  if (pointer == kAdcConfig) {
    adc_config_ = word;
    restart(now_s);
  }
  if (pointer == kShuntCal) shunt_cal_ = word & 0x7FFF;
  if (pointer == kShuntTempco) shunt_tempco_ = word & 0x3FFF;
  if (pointer == kDiagnostics) alert_ = word & kAlertWritable;
}

bool Ina228::alert_low(double now_s) {
  channels_.advance(now_s);
  const bool asserted = (alert_ & kAlertOnReady) && channels_.ready();
  return asserted != static_cast<bool>(alert_ & kAlertPolarity);
}

double Ina228::next_alert_change_s() const {
  return alert_ & kAlertOnReady ? channels_.next_end_s() : PowerSensor::next_alert_change_s();
}

nlohmann::ordered_json Ina228::counts() const { return channels_.counts(); }

}  // namespace opjoule::rig::ina228
