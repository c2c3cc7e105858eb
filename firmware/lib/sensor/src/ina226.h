// INA226 register driver: TI data sheet SBOS547A (August 2015), sections cited below. Its functions
// are those of ina219.h. Chips with the same registers: Silergy's SQ52201; the INA260 (SBOS656C),
// whose register 1 holds the current through its own shunt; and the INA234 (SBOS844C), whose codes
// have 12 bits.
#ifndef OPJOULE_SENSOR_INA226_H_
#define OPJOULE_SENSOR_INA226_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"

namespace opjoule {
namespace ina226 {

// 7.6, table 4: register addresses.
constexpr uint8_t kConfiguration = 0x00;
constexpr uint8_t kShuntVoltage = 0x01;
constexpr uint8_t kBusVoltage = 0x02;
constexpr uint8_t kMaskEnable = 0x06;

// 7.6.1, table 9: operating modes; bit 14 reads as 1 and is kept.
constexpr uint16_t kKept = 0x4000;
constexpr uint16_t kKeptIna260 = 0x6000;  // SBOS656C, 8.6.1
constexpr uint8_t kRangeShift = 12;       // SBOS844C, table 7-4: ADCRANGE
constexpr uint16_t kShuntContinuous = 5;
constexpr uint16_t kBusContinuous = 6;
constexpr uint16_t kShuntAndBusContinuous = 7;

// 7.6.7: CVRF, set after all conversions, averaging and multiplications; cleared by reading this
// register or writing the configuration.
constexpr uint16_t kConversionReady = 0x0008;
// 7.6.7: CNVR, the ALERT pin goes low with the flag and high when this register
// is read.
constexpr uint16_t kAlertReady = 0x0400;

// Time of one conversion by VSHCT or VBUSCT code (7.6.1, tables 7 and 8), 0: no such code.
uint32_t conversion_ticks(uint8_t code);

// As ina219::plan(); shunt_adc is AVG << 3 | VSHCT, bus_adc is VBUSCT, range must be 0.
protocol::Result plan(const protocol::Configure& wanted, uint8_t address, SensorPlan* plan,
                      uint16_t* detail);
// The same of an INA260.
protocol::Result plan_own_shunt(const protocol::Configure& wanted, uint8_t address,
                                SensorPlan* plan, uint16_t* detail);
// The same of an INA234; range is ADCRANGE, 0: +-81.92 mV, 1: +-20.48 mV.
protocol::Result plan_12_bit(const protocol::Configure& wanted, uint8_t address, SensorPlan* plan,
                             uint16_t* detail);

}  // namespace ina226
}  // namespace opjoule

#endif  // OPJOULE_SENSOR_INA226_H_
