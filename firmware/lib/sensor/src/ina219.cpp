#include "ina219.h"

#include "configure_fields.h"
#include "tick_clock.h"

namespace opjoule {
namespace ina219 {

using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {

// A pair takes up to 2 polls of the flag and 3 register reads with pointer: 505 us on the bus and
// 45 us in interrupts; and the chip may be 9 % fast.
constexpr uint32_t kLeastPairTicks = 605 * kTicksPerUs;
// Shunt only: one register read fewer.
constexpr uint32_t kLeastShuntTicks = 500 * kTicksPerUs;
// The shunt register is read up to 220 us after the flag was set, before the next shunt
// conversion of a pair overwrites it.
constexpr uint32_t kLeastShuntOfPairTicks = 250 * kTicksPerUs;

const RegisterMap kRegisters = {kConfiguration,   kBusVoltage,  kPower, kShuntVoltage,
                                kBusVoltage,      false,        0,      kBusShift,
                                kConversionReady, kMathOverflow};

// Of the codes for 12 bit (table 5) the bus voltage gets the one that the chip does not have after
// power-on: a configuration that has fallen back can then be told in every mode.
constexpr uint8_t kOther12Bit = 8;

uint16_t config_word(const Configure& wanted, uint16_t mode) {
  const uint8_t bus_adc = wanted.bus_adc == 3 ? kOther12Bit : wanted.bus_adc;
  return static_cast<uint16_t>(kBusRange32V | (wanted.range << 11) | (bus_adc << 7) |
                               (wanted.shunt_adc << 3) | mode);
}

// Whether the bus can follow these conversions in this mode, whatever the chip's tolerance.
bool carries(Mode mode, uint32_t shunt_ticks, uint32_t bus_ticks) {
  switch (mode) {
    case Mode::pairs:
      return shunt_ticks >= kLeastShuntOfPairTicks && shunt_ticks + bus_ticks >= kLeastPairTicks;
    case Mode::shunts:
      return shunt_ticks >= kLeastShuntTicks;
    default:
      return true;
  }
}

}  // namespace

uint32_t conversion_ticks(uint8_t adc_code) {
  // 7.5 and table 5: 84 us at 9 bit to 532 us at 12 bit; bit 2 is "don't care" without averaging.
  if (adc_code < 8) return (20 + (64UL << (adc_code & 3))) * kTicksPerUs;
  if (adc_code > 15) return 0;
  return (532UL * kTicksPerUs) << (adc_code - 8);  // 2^n samples of 12 bit
}

Result plan(const Configure& wanted, uint8_t address, SensorPlan* plan, uint16_t* detail) {
  const uint32_t shunt_ticks = conversion_ticks(wanted.shunt_adc);
  const uint32_t bus_ticks = conversion_ticks(wanted.bus_adc);
  const Mode mode = static_cast<Mode>(wanted.mode);
  const bool pairs = mode == Mode::pairs;
  *detail = configure_field::kMode;
  if (wanted.mode > static_cast<uint8_t>(Mode::shunts)) return Result::bad_value;
  *detail = configure_field::kShuntAdc;
  if (shunt_ticks == 0 || !carries(mode, shunt_ticks, 136192)) return Result::bad_value;
  *detail = configure_field::kBusAdc;
  if (bus_ticks == 0 || !carries(mode, shunt_ticks, bus_ticks)) return Result::bad_value;
  *detail = configure_field::kRange;
  if (wanted.range > 3) return Result::bad_value;

  *plan = SensorPlan{};
  plan->map = &kRegisters;
  plan->mode = mode;
  plan->address = address;
  plan->sample_mode = config_word(wanted, pairs ? kShuntAndBusContinuous : kShuntContinuous);
  plan->bus_mode = config_word(wanted, kBusContinuous);
  plan->shunt_full_scale = static_cast<int16_t>(4000 << wanted.range);  // 8.6.3.1: 40 mV << PGA
  plan->bus_full_scale = kBusFullScale32V;
  plan->bus_every = wanted.bus_every;
  plan->sample_ticks = pairs ? shunt_ticks + bus_ticks : shunt_ticks;
  plan->shunt_share_q8 = static_cast<uint16_t>((shunt_ticks << 8) / plan->sample_ticks);
  plan->bus_ticks = bus_ticks;
  Configure first = wanted;
  if (bus_ticks < shunt_ticks) first.bus_adc = wanted.shunt_adc;
  plan->first_bus_mode = config_word(first, kBusContinuous);
  plan->first_bus_ticks = conversion_ticks(first.bus_adc);
  *detail = 0;
  return Result::ok;
}

}  // namespace ina219
}  // namespace opjoule
