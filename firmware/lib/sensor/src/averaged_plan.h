// What the plans of INA226 and INA228 have in common: both chips average several conversions of
// each channel into one result, and choose the time of a conversion by a code of 3 bits.
#ifndef OPJOULE_SENSOR_AVERAGED_PLAN_H_
#define OPJOULE_SENSOR_AVERAGED_PLAN_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"

namespace opjoule {

// Times and bounds of one chip.
struct AveragedChip {
  uint32_t shunt_ticks;  // one conversion, as asked for; 0: no such code
  uint32_t bus_ticks;
  uint32_t least_pair_ticks;  // that the bus can follow
  uint32_t least_shunt_ticks;
  uint8_t most_range;  // greatest code of the shunt range
};

// Number of averages by AVG code, 0 to 7: 1, 4, 16, 64, 128, ... 1024 (SBOS547A, 7.6.1, table 6;
// SLYS021A, 7.6.1.2).
uint16_t averages(uint8_t code);

// Checks `wanted`, whose shunt_adc is AVG << 3 | VSHCT, and fills in the plan but for registers,
// words and full scales, which the chip's driver adds. Result and detail as ina219::plan().
protocol::Result plan_averaged(const protocol::Configure& wanted, uint8_t address,
                               const AveragedChip& chip, SensorPlan* plan, uint16_t* detail);

}  // namespace opjoule

#endif  // OPJOULE_SENSOR_AVERAGED_PLAN_H_
