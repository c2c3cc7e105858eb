// What the sampler must know about a sensor: its registers and its timing. A driver (ina219.h, ...)
// makes the plan from the host's configure message; the sampler then runs without knowing the chip.
#ifndef OPJOULE_SENSOR_SENSOR_PLAN_H_
#define OPJOULE_SENSOR_SENSOR_PLAN_H_

#include <stdint.h>

#include "messages.h"

namespace opjoule {

constexpr uint8_t kNoRegister = 0xFF;

// The registers of a chip, the same for every plan.
struct RegisterMap {
  uint8_t configuration;  // writing it starts conversions
  uint8_t poll;           // holds the conversion-ready flag
  uint8_t clear;          // reading it clears the flag; kNoRegister: reading `poll` clears it
  uint8_t shunt;
  uint8_t bus;
  bool wide;            // shunt and bus have 3 bytes instead of 2
  uint8_t shunt_shift;  // register >> shift is the code
  uint8_t bus_shift;
  uint16_t ready_mask;     // in `poll`
  uint16_t overflow_mask;  // in `bus`, 0 if it has none
};

// A register that is written before conversions are started.
struct Setup {
  uint8_t reg;
  uint16_t value;
};

constexpr uint8_t kMaxSetups = 2;

struct SensorPlan {
  const RegisterMap* map;
  protocol::Mode mode;
  uint8_t address;  // 7 bit
  uint8_t setups;   // how many of `setup`
  Setup setup[kMaxSetups];
  uint16_t sample_mode;      // configuration: converts what the mode samples, continuously
  uint16_t bus_mode;         // configuration: converts the bus voltage alone
  int32_t shunt_full_scale;  // codes at or beyond +- this are at the end of the range
  uint32_t bus_full_scale;   // bus codes from here on are, too
  uint16_t bus_every;        // shunt modes: conversions between bus readings, 0: at the start only
  uint32_t sample_ticks;     // nominal time of one conversion (pair) of sample_mode
  uint16_t shunt_share_q8;   // share of that time for which a shunt result stays readable, in 1/256
  uint32_t bus_ticks;        // nominal time of one conversion of bus_mode
  // The same of bus conversions that take as long as one of the sample mode at least. The first
  // ones do: an end that comes earlier is then that of a conversion that the chip has finished.
  uint16_t first_bus_mode;
  uint32_t first_bus_ticks;
};

}  // namespace opjoule

#endif  // OPJOULE_SENSOR_SENSOR_PLAN_H_
