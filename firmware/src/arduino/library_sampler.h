// Samples one INA219 through the Adafruit library, for any controller of the Arduino framework.
//
// The library does not give access to the chip's ready flag, so that time must take its place: a
// register is read again only when the chip must have a new value, its longest conversion time
// after the end of the last read. No value is read twice, and about a quarter of them are never
// read. The end of a conversion is known to within one pair of conversions (1.06 ms): the stamp is
// the middle of that interval.
#ifndef OPJOULE_SRC_ARDUINO_LIBRARY_SAMPLER_H_
#define OPJOULE_SRC_ARDUINO_LIBRARY_SAMPLER_H_

#include <stdint.h>

#include "fault_counters.h"
#include "sample_source.h"
#include "sensor_scan.h"

class Adafruit_INA219;

namespace opjoule {

// Least time from the end of one read of a register to the next: shunt and bus conversion of a slow
// chip (2 x 586 us, SBOS448G 7.5), measured by a clock that is 1 % fast.
constexpr uint32_t kReadAgainTicks = 1184 * kTicksPerUs;

// The plan for message configure. The library knows the chip's 12-bit shunt+bus mode only, and the
// ranges of 320 and 40 mV: bad_value for anything else, no_sensor if it is no INA219.
protocol::Result plan_by_library(const FoundSensor& sensor, const protocol::Configure& wanted,
                                 SensorPlan* plan, uint16_t* detail);

class LibrarySampler : public SampleSource {
 public:
  explicit LibrarySampler(FaultCounters& faults) : faults_(faults) {}

  // Starts the bus; gives how many of `found` it filled.
  uint8_t find_sensors(FoundSensor* found, uint8_t capacity);

  // False: no sensor is to be sampled, or more than one.
  bool start();

  // Makes the read that is due, if any (230 us on an AVR). To be called again and again from the
  // main loop.
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
