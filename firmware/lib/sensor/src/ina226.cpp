#include "ina226.h"

#include "configure_fields.h"
#include "tick_clock.h"

namespace opjoule {
namespace ina226 {

using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {

// Reading the flag clears it, so a conversion costs one register read less than an INA219's: up to
// 2 polls and 2 reads with pointer for a pair, 1 for a shunt conversion, and interrupt times.
constexpr uint32_t kLeastPairTicks = 520 * kTicksPerUs;
constexpr uint32_t kLeastShuntTicks = 400 * kTicksPerUs;
constexpr uint32_t kLeastShuntOfPairTicks = 250 * kTicksPerUs;

const RegisterMap kRegisters = {
    kConfiguration, kMaskEnable, kNoRegister, kShuntVoltage,    kBusVoltage,
    false,          0,           0,           kConversionReady, 0};

}  // namespace

uint32_t conversion_ticks(uint8_t code) {
  // Without a table, which on an AVR would take RAM.
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

uint16_t averages(uint8_t code) {
  return static_cast<uint16_t>(code < 4 ? 1 << (2 * code) : 8 << code);
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
  const uint32_t shunts_ticks = shunt_ticks * averages(averaging);
  if (pairs ? shunt_ticks < kLeastShuntOfPairTicks : shunts_ticks < kLeastShuntTicks) {
    return Result::bad_value;
  }
  *detail = configure_field::kBusAdc;
  const uint32_t bus_ticks = conversion_ticks(wanted.bus_adc) * averages(averaging);
  if (bus_ticks == 0) return Result::bad_value;
  if (pairs && shunts_ticks + bus_ticks < kLeastPairTicks) return Result::bad_value;
  *detail = configure_field::kRange;
  if (wanted.range != 0) return Result::bad_value;

  const uint16_t times = static_cast<uint16_t>(kKept | (averaging << 9) | (wanted.bus_adc << 6) |
                                               ((wanted.shunt_adc & 7) << 3));
  *plan = SensorPlan{};
  plan->map = &kRegisters;
  plan->mode = mode;
  plan->address = address;
  plan->setups = 1;
  plan->setup[0] = {kMaskEnable, kAlertReady};
  plan->sample_mode =
      static_cast<uint16_t>(times | (pairs ? kShuntAndBusContinuous : kShuntContinuous));
  plan->bus_mode = static_cast<uint16_t>(times | kBusContinuous);
  plan->shunt_full_scale = 32767;  // 7.6.2: 81.92 mV
  plan->bus_full_scale = 32767;    // 7.6.3: 40.96 V
  plan->bus_every = wanted.bus_every;
  plan->sample_ticks = pairs ? shunts_ticks + bus_ticks : shunts_ticks;
  plan->shunt_share_q8 = static_cast<uint16_t>((shunt_ticks << 8) / plan->sample_ticks);
  plan->bus_ticks = bus_ticks;
  *detail = 0;
  return Result::ok;
}

}  // namespace ina226
}  // namespace opjoule
