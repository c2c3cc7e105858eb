// What the meter needs of the controller that it runs on. Implemented in firmware/src for the
// ATmega328P, in firmware/src/arduino for the Arduino framework, and by a fake in the tests. Called
// from the main loop only.
#ifndef OPJOULE_METER_CONTROLLER_H_
#define OPJOULE_METER_CONTROLLER_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"
#include "sensor_scan.h"

namespace opjoule {

class Controller {
 public:
  virtual uint32_t now_ticks() = 0;
  virtual uint8_t turn() = 0;  // of the counter, modulo 256; 32.8 ms each
  virtual uint32_t tick_wraps() = 0;

  // Waits (less than 1 ms) with interrupts enabled.
  virtual void wait_until(uint32_t ticks) = 0;

  // Sends what the transmit ring holds: an idle line does not start by itself.
  virtual void start_transmit() = 0;
  // Nothing is left to send, and the last byte has gone out.
  virtual bool line_idle() = 0;

  // Fills at most `capacity` of `found` with the sensors on the bus; gives how many. Only while
  // nothing is sampled.
  virtual uint8_t find_sensors(FoundSensor* found, uint8_t capacity) = 0;
  // How this controller would sample this sensor as `wanted`; result and detail as ina219::plan().
  virtual protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                                       SensorPlan* plan, uint16_t* detail) = 0;
  // Starts sampling as configured in the sample source, until that is stopped. False: no sensor is
  // to be sampled, or more than the bus has time for.
  virtual bool start_sampling() = 0;
  // Waits (below 1 ms) until the bus is idle after the sample source was stopped.
  virtual void finish_sampling() = 0;

  virtual uint16_t stack_free_bytes() = 0;

 protected:
  ~Controller() = default;
};

// What does not change while the controller runs.
struct ControllerFacts {
  uint8_t kind;  // enum protocol::ControllerKind
  uint8_t reset_cause;
  uint8_t device_id[10];
};

}  // namespace opjoule

#endif  // OPJOULE_METER_CONTROLLER_H_
