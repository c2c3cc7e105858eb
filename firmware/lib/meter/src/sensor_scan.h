// Finds the sensors on the bus, tells their chips apart, and calls the driver of each. Main loop,
// sampler stopped.
#ifndef OPJOULE_METER_SENSOR_SCAN_H_
#define OPJOULE_METER_SENSOR_SCAN_H_

#include <stdint.h>

#include "bus_transfer.h"
#include "messages.h"
#include "sensor_plan.h"

namespace opjoule {

struct FoundSensor {
  uint8_t address;
  protocol::ChipKind chip;
};

// One transfer (with its pointer written), waited for.
using BusAccess = BusResult (*)(const BusTransfer&);

// Looks at addresses 0x40 to 0x4F in turn; gives how many of `found` (at most `capacity`) it
// filled. Resets an INA219. Takes about 2 ms on an empty bus at 400 kHz.
uint8_t scan_sensors(BusAccess transfer, FoundSensor* found, uint8_t capacity);

// The plan that this chip's driver makes of `wanted`; result and detail as the driver's
// (ina219.h), no_sensor if the chip is unknown.
protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                             SensorPlan* plan, uint16_t* detail);

}  // namespace opjoule

#endif  // OPJOULE_METER_SENSOR_SCAN_H_
