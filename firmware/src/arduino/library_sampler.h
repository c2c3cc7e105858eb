// Samples one INA219 through the Adafruit library, for any board of the Arduino framework.
//
// The library keeps the chip's ready flag to itself, so time must take its place: a register is
// read again only when the chip has made a new value for certain, its longest conversion time after
// the end of the last read. No value is ever taken twice; about a quarter of them is never taken.
// When a value's conversion ended is known to within one pair of conversions (1.06 ms): the stamp
// is the middle of what is possible.
#ifndef OPJOULE_SRC_ARDUINO_LIBRARY_SAMPLER_H_
#define OPJOULE_SRC_ARDUINO_LIBRARY_SAMPLER_H_

#include <stdint.h>

#include "fault_counters.h"
#include "sample_source.h"
#include "sensor_scan.h"

class Adafruit_INA219;

namespace opjoule {

// A read may begin so long after the end of the last one of the same register: shunt and bus
// conversion of a slow chip (2 x 586 us, SBOS448G 7.5) by a microcontroller's clock that is 1 %
// fast.
constexpr uint32_t kReadAgainTicks = 1184 * kTicksPerUs;

// The plan for message configure. The library knows the chip's 12-bit shunt+bus mode only, and the
// ranges of 320 and 40 mV: bad_value for what is not that, no_sensor if it is no INA219.
protocol::Result plan_by_library(const FoundSensor& sensor, const protocol::Configure& wanted,
                                 SensorPlan* plan, uint16_t* detail);

class LibrarySampler : public SampleSource {
 public:
  explicit LibrarySampler(FaultCounters& faults) : faults_(faults) {}

  // Puts the bus into operation; gives how many of `found` it filled.
  uint8_t find_sensors(FoundSensor* found, uint8_t capacity);

  // False: no sensor is to be sampled, or more than one.
  bool start();

  // Makes the read that is due, if one is (230 us on an AVR). Main loop, over and over.
  void run();

 private:
  void set_range();
  bool read_shunt();
  void read_bus();
  bool answered();

  FaultCounters& faults_;
  Adafruit_INA219* chips_[kMaxSensors] = {};
  uint8_t sensor_ = 0;        // the one that is sampled
  uint32_t shunt_ticks_ = 0;  // when its register was last read, at the latest
  uint32_t bus_ticks_ = 0;
  Sample sample_ = {};          // of which the shunt has been read, if shunt_is_read_
  bool shunt_is_read_ = false;  // and the bus has not
  uint8_t flags_ = 0;           // for the next sample
};

}  // namespace opjoule

#endif  // OPJOULE_SRC_ARDUINO_LIBRARY_SAMPLER_H_
