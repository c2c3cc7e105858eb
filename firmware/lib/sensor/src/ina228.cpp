#include "ina228.h"

#include "configure_fields.h"
#include "ina226.h"
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
constexpr uint32_t kLeastShuntOfPairTicks = 250 * kTicksPerUs;

const RegisterMap kRegisters = {
    kAdcConfig, kDiagnostics, kNoRegister, kShuntVoltage,    kBusVoltage,
    true,       kCodeShift,   kCodeShift,  kConversionReady, 0};

}  // namespace

uint32_t conversion_ticks(uint8_t code) {
  // Without a table, which on an AVR would take RAM.
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
  const Mode mode = static_cast<Mode>(wanted.mode);
  const bool pairs = mode == Mode::pairs;
  const uint8_t averaging = wanted.shunt_adc >> 3;
  *detail = configure_field::kMode;
  if (mode != Mode::off && mode != Mode::pairs && mode != Mode::shunts) return Result::bad_value;
  *detail = configure_field::kShuntAdc;
  if (averaging > 7) return Result::bad_value;
  const uint32_t shunt_ticks = conversion_ticks(wanted.shunt_adc & 7);
  const uint32_t shunts_ticks = shunt_ticks * ina226::averages(averaging);
  if (pairs ? shunt_ticks < kLeastShuntOfPairTicks : shunts_ticks < kLeastShuntTicks) {
    return Result::bad_value;
  }
  *detail = configure_field::kBusAdc;
  const uint32_t bus_ticks = conversion_ticks(wanted.bus_adc) * ina226::averages(averaging);
  if (bus_ticks == 0) return Result::bad_value;
  if (pairs && shunts_ticks + bus_ticks < kLeastPairTicks) return Result::bad_value;
  *detail = configure_field::kRange;
  if (wanted.range > 1) return Result::bad_value;

  const uint16_t times =
      static_cast<uint16_t>((wanted.bus_adc << 9) | ((wanted.shunt_adc & 7) << 6) | averaging);
  *plan = SensorPlan{};
  plan->map = &kRegisters;
  plan->mode = mode;
  plan->address = address;
  plan->setups = 2;
  plan->setup[0] = {kDiagnostics, kLatch | kAlertReady};
  plan->setup[1] = {kConfig, static_cast<uint16_t>(wanted.range << kRangeShift)};
  plan->sample_mode =
      static_cast<uint16_t>(times | (pairs ? kShuntAndBusContinuous : kShuntContinuous));
  plan->bus_mode = static_cast<uint16_t>(times | kBusContinuous);
  plan->shunt_full_scale = 524287;  // 20 bit
  plan->bus_full_scale = 524287;    // positive half of 20 bit: 102.4 V
  plan->bus_every = wanted.bus_every;
  plan->sample_ticks = pairs ? shunts_ticks + bus_ticks : shunts_ticks;
  plan->shunt_share_q8 = static_cast<uint16_t>((shunt_ticks << 8) / plan->sample_ticks);
  plan->bus_ticks = bus_ticks;
  *detail = 0;
  return Result::ok;
}

}  // namespace ina228
}  // namespace opjoule
