#include "ina226.h"

#include "averaged_plan.h"
#include "tick_clock.h"

namespace opjoule {
namespace ina226 {

using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {

// Reading the flag clears it, so that a conversion takes one register read fewer than an INA219's:
// up to 2 polls, 2 reads with pointer for a pair or 1 for a shunt conversion, and time in
// interrupts.
constexpr uint32_t kLeastPairTicks = 520 * kTicksPerUs;
constexpr uint32_t kLeastShuntTicks = 400 * kTicksPerUs;

const RegisterMap kRegisters = {
    kConfiguration, kMaskEnable, kNoRegister, kShuntVoltage,    kBusVoltage,
    false,          0,           0,           kConversionReady, 0};
const RegisterMap kShortRegisters = {
    kConfiguration, kMaskEnable, kNoRegister, kShuntVoltage,    kBusVoltage,
    false,          4,           4,           kConversionReady, 0};

}  // namespace

uint32_t conversion_ticks(uint8_t code) {
  // Not a table: on an AVR it would take RAM.
  switch (code) {
    case 0:
      return 140 * kTicksPerUs;
    case 1:
      return 204 * kTicksPerUs;
    case 2:
      return 332 * kTicksPerUs;
    case 3:
      return 588 * kTicksPerUs;
    case 4:
      return 1100 * kTicksPerUs;
    case 5:
      return 2116 * kTicksPerUs;
    case 6:
      return 4156 * kTicksPerUs;
    case 7:
      return 8244 * kTicksPerUs;
    default:
      return 0;
  }
}

namespace {

// `kept`: the configuration's constant bits.
Result plan_kept(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail,
                 uint16_t kept, uint8_t most_range) {
  const AveragedChip chip = {conversion_ticks(wanted.shunt_adc & 7),
                             conversion_ticks(wanted.bus_adc), kLeastPairTicks, kLeastShuntTicks,
                             most_range};
  const Result result = plan_averaged(wanted, address, chip, plan, detail);
  if (result != Result::ok) return result;
  const uint16_t times =
      static_cast<uint16_t>(kept | ((wanted.shunt_adc >> 3) << 9) | (wanted.bus_adc << 6) |
                            ((wanted.shunt_adc & 7) << 3));
  plan->map = &kRegisters;
  plan->setups = 1;
  plan->setup[0] = {kMaskEnable, kAlertReady};
  plan->sample_mode = static_cast<uint16_t>(
      times | (plan->mode == Mode::pairs ? kShuntAndBusContinuous : kShuntContinuous));
  plan->bus_mode = plan->first_bus_mode = static_cast<uint16_t>(times | kBusContinuous);
  plan->shunt_full_scale = 32767;  // 7.6.2: 81.92 mV
  plan->bus_full_scale = 32767;    // 7.6.3: 40.96 V
  return Result::ok;
}

}  // namespace

Result plan(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail) {
  return plan_kept(wanted, address, plan, detail, kKept, 0);
}

Result plan_own_shunt(const Configure& wanted, uint8_t address, SensorPlan* plan,
                      uint16_t* detail) {
  return plan_kept(wanted, address, plan, detail, kKeptIna260, 0);
}

Result plan_12_bit(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail) {
  const uint16_t kept =
      static_cast<uint16_t>(kKept | (static_cast<uint16_t>(wanted.range & 1) << kRangeShift));
  const Result result = plan_kept(wanted, address, plan, detail, kept, 1);
  if (result != Result::ok) return result;
  plan->map = &kShortRegisters;
  plan->shunt_full_scale = 2047;
  plan->bus_full_scale = 2047;  // 52.4 V; the chip stands 28 V
  return Result::ok;
}

}  // namespace ina226
}  // namespace opjoule
