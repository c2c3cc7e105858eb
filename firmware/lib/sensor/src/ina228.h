// INA228 register driver: TI data sheet SLYS021A (May 2022), sections cited below. Its functions
// are those of ina219.h. INA237 (SBOSA20A) and INA238 (SLYS025A) are the same with codes of 16
// bits. The chip's own charge and energy accumulators are not used: the meter keeps running sums
// for every chip alike, with time stamps.
#ifndef OPJOULE_SENSOR_INA228_H_
#define OPJOULE_SENSOR_INA228_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"

namespace opjoule {
namespace ina228 {

// 7.6.1, table 7-3: register addresses. VSHUNT and VBUS have 24 bits, the code in the upper 20.
constexpr uint8_t kConfig = 0x00;
constexpr uint8_t kAdcConfig = 0x01;
constexpr uint8_t kShuntVoltage = 0x04;
constexpr uint8_t kBusVoltage = 0x05;
constexpr uint8_t kDiagnostics = 0x0B;
constexpr uint8_t kCodeShift = 4;

// 7.6.1.1: ADCRANGE, 0: +-163.84 mV, 1: +-40.96 mV.
constexpr uint8_t kRangeShift = 4;
// 7.6.1.2: MODE.
constexpr uint16_t kBusContinuous = 0x9000;
constexpr uint16_t kShuntContinuous = 0xA000;
constexpr uint16_t kShuntAndBusContinuous = 0xB000;
// 7.6.1.12: ALATCH keeps CNVRF until this register is read.
constexpr uint16_t kLatch = 0x8000;
constexpr uint16_t kConversionReady = 0x0002;
// 7.6.1.12: CNVR, the ALERT pin goes low with the flag and, latched, high when
// this register is read.
constexpr uint16_t kAlertReady = 0x4000;

// Time of one conversion by VSHCT or VBUSCT code (7.6.1.2), 0: no such code.
uint32_t conversion_ticks(uint8_t code);

// As ina219::plan(); shunt_adc is AVG << 3 | VSHCT, bus_adc is VBUSCT, range is ADCRANGE.
protocol::Result plan(const protocol::Configure& wanted, uint8_t address, SensorPlan* plan,
                      uint16_t* detail);
// The same of an INA237 or INA238.
protocol::Result plan_16_bit(const protocol::Configure& wanted, uint8_t address, SensorPlan* plan,
                             uint16_t* detail);

}  // namespace ina228
}  // namespace opjoule

#endif  // OPJOULE_SENSOR_INA228_H_
