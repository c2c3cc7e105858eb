#include "averaged_plan.h"

#include "configure_fields.h"
#include "tick_clock.h"

namespace opjoule {

using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {
// As the INA219's: a pair's shunt register is read before its next conversion overwrites it.
constexpr uint32_t kLeastShuntOfPairTicks = 250 * kTicksPerUs;
}  // namespace

uint16_t averages(uint8_t code) {
  return static_cast<uint16_t>(code < 4 ? 1 << (2 * code) : 8 << code);
}

Result plan_averaged(const Configure& wanted, uint8_t address, const AveragedChip& chip,
                     SensorPlan* plan, uint16_t* detail) {
  const Mode mode = static_cast<Mode>(wanted.mode);
  const bool pairs = mode == Mode::pairs;
  const uint8_t averaging = wanted.shunt_adc >> 3;
  *detail = configure_field::kMode;
  if (mode != Mode::off && mode != Mode::pairs && mode != Mode::shunts) return Result::bad_value;
  *detail = configure_field::kShuntAdc;
  if (averaging > 7) return Result::bad_value;
  const uint32_t shunts_ticks = chip.shunt_ticks * averages(averaging);
  if (pairs ? chip.shunt_ticks < kLeastShuntOfPairTicks : shunts_ticks < chip.least_shunt_ticks) {
    return Result::bad_value;
  }
  *detail = configure_field::kBusAdc;
  const uint32_t bus_ticks = chip.bus_ticks * averages(averaging);
  if (bus_ticks == 0) return Result::bad_value;
  if (pairs && shunts_ticks + bus_ticks < chip.least_pair_ticks) return Result::bad_value;
  *detail = configure_field::kRange;
  if (wanted.range > chip.most_range) return Result::bad_value;

  *plan = SensorPlan{};
  plan->mode = mode;
  plan->address = address;
  plan->bus_every = wanted.bus_every;
  plan->sample_ticks = pairs ? shunts_ticks + bus_ticks : shunts_ticks;
  // The results are replaced when the next averages are complete: with the last shunt conversion at
  // the earliest, which one bus conversion follows (SBOS547B, 6.3.1).
  const uint32_t bus_share_q8 =
      pairs ? ((chip.bus_ticks << 8) + plan->sample_ticks - 1) / plan->sample_ticks : 0;
  plan->shunt_share_q8 = static_cast<uint16_t>(256 - bus_share_q8);
  plan->bus_ticks = plan->first_bus_ticks = bus_ticks;
  *detail = 0;
  return Result::ok;
}

}  // namespace opjoule
