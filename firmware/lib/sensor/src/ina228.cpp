#include "ina228.h"

#include "averaged_plan.h"
#include "tick_clock.h"

namespace opjoule {
namespace ina228 {

using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {

// As the INA226's, with 3 bytes a value.
constexpr uint32_t kLeastPairTicks = 560 * kTicksPerUs;
constexpr uint32_t kLeastShuntTicks = 420 * kTicksPerUs;
constexpr uint8_t kMostRange = 1;

const RegisterMap kRegisters = {
    kAdcConfig, kDiagnostics, kNoRegister, kShuntVoltage,    kBusVoltage,
    true,       kCodeShift,   kCodeShift,  kConversionReady, 0};
const RegisterMap kShortRegisters = {kAdcConfig,
                                     kDiagnostics,
                                     kNoRegister,
                                     kShuntVoltage,
                                     kBusVoltage,
                                     false,
                                     0,
                                     0,
                                     kConversionReady,
                                     0};

}  // namespace

uint32_t conversion_ticks(uint8_t code) {
  // Not a table: on an AVR it would take RAM.
  switch (code) {
    case 0:
      return 50 * kTicksPerUs;
    case 1:
      return 84 * kTicksPerUs;
    case 2:
      return 150 * kTicksPerUs;
    case 3:
      return 280 * kTicksPerUs;
    case 4:
      return 540 * kTicksPerUs;
    case 5:
      return 1052 * kTicksPerUs;
    case 6:
      return 2074 * kTicksPerUs;
    case 7:
      return 4120 * kTicksPerUs;
    default:
      return 0;
  }
}

Result plan(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail) {
  const AveragedChip chip = {conversion_ticks(wanted.shunt_adc & 7),
                             conversion_ticks(wanted.bus_adc), kLeastPairTicks, kLeastShuntTicks,
                             kMostRange};
  const Result result = plan_averaged(wanted, address, chip, plan, detail);
  if (result != Result::ok) return result;
  const uint16_t times = static_cast<uint16_t>(
      (wanted.bus_adc << 9) | ((wanted.shunt_adc & 7) << 6) | (wanted.shunt_adc >> 3));
  plan->map = &kRegisters;
  plan->setups = 2;
  plan->setup[0] = {kDiagnostics, kLatch | kAlertReady};
  plan->setup[1] = {kConfig, static_cast<uint16_t>(wanted.range << kRangeShift)};
  plan->sample_mode = static_cast<uint16_t>(
      times | (plan->mode == Mode::pairs ? kShuntAndBusContinuous : kShuntContinuous));
  plan->bus_mode = plan->first_bus_mode = static_cast<uint16_t>(times | kBusContinuous);
  plan->shunt_full_scale = 524287;  // 20 bit
  plan->bus_full_scale = 524287;    // positive half of 20 bit: 102.4 V
  return Result::ok;
}

Result plan_16_bit(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail) {
  const Result result = ina228::plan(wanted, address, plan, detail);
  if (result != Result::ok) return result;
  plan->map = &kShortRegisters;
  plan->shunt_full_scale = 32767;
  plan->bus_full_scale = 32767;  // 102.4 V; the chip stands 85 V
  return Result::ok;
}

}  // namespace ina228
}  // namespace opjoule
