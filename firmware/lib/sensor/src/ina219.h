// INA219 register driver: TI data sheet SBOS448G (December 2015), sections cited below.
// Pure functions, no bus access: the sampler moves the bytes.
#ifndef OPJOULE_SENSOR_INA219_H_
#define OPJOULE_SENSOR_INA219_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"

namespace opjoule {
namespace ina219 {

// 8.6.1, table 2: register addresses.
constexpr uint8_t kConfiguration = 0x00;
constexpr uint8_t kShuntVoltage = 0x01;
constexpr uint8_t kBusVoltage = 0x02;
constexpr uint8_t kPower = 0x03;

// 8.6.2.1: configuration register, default after power-on and reset.
constexpr uint16_t kConfigurationDefault = 0x399F;
constexpr uint16_t kReset = 0x8000;
constexpr uint16_t kBusRange32V = 0x2000;
// 8.6.2.1, table 6: operating modes.
constexpr uint16_t kShuntContinuous = 5;
constexpr uint16_t kBusContinuous = 6;
constexpr uint16_t kShuntAndBusContinuous = 7;

// 8.6.3.2: bus voltage register. CNVR "is set after all conversions, averaging, and multiplications
// are complete" and clears by writing the mode bits or reading the power register.
constexpr uint16_t kConversionReady = 0x0002;
constexpr uint16_t kMathOverflow = 0x0001;
constexpr uint8_t kBusShift = 3;
// 8.6.3.2: 4 mV a step; 32 V (or, with BRNG = 0, 16 V) is the end of the range.
constexpr uint16_t kBusFullScale32V = 8000;
constexpr uint16_t kBusFullScale16V = 4000;

// Time of one conversion by ADC code (BADC or SADC, 8.6.2.1 table 5) in ticks; 0: no such code.
// Typical values; the chip's may be 10 % longer (7.5, ADC conversion time).
uint32_t conversion_ticks(uint8_t adc_code);

// The plan that `wanted` asks of the INA219 at `address`. Result bad_value: a field is out of range
// or the bus cannot carry the rate; `detail` is then the field's place in the message, from 0.
protocol::Result plan(const protocol::Configure& wanted, uint8_t address, SensorPlan* plan,
                      uint16_t* detail);

}  // namespace ina219
}  // namespace opjoule

#endif  // OPJOULE_SENSOR_INA219_H_
