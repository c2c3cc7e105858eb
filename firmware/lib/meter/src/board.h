// What the meter needs of the board it runs on. Implemented in firmware/src for the ATmega328P, in
// firmware/src/arduino for the Arduino framework, and by a fake in the tests. Called from the main
// loop only.
#ifndef OPJOULE_METER_BOARD_H_
#define OPJOULE_METER_BOARD_H_

#include <stdint.h>

#include "messages.h"
#include "sensor_plan.h"
#include "sensor_scan.h"

namespace opjoule {

class Board {
 public:
  virtual uint32_t now_ticks() = 0;
  virtual uint8_t turn() = 0;  // of the counter, modulo 256; 32.8 ms each
  virtual uint32_t tick_wraps() = 0;

  // Waits (below 1 ms) without holding interrupts up.
  virtual void wait_until(uint32_t ticks) = 0;

  // Sends what the transmit ring holds. Before this call bytes in an idle line's ring wait.
  virtual void start_transmit() = 0;
  // Nothing to send and the last byte has left.
  virtual bool line_idle() = 0;

  // Fills at most `capacity` of `found` with the sensors on the bus; gives how many. Only while
  // nothing is sampled.
  virtual uint8_t find_sensors(FoundSensor* found, uint8_t capacity) = 0;
  // How this board would sample this sensor as `wanted`; result and detail as ina219::plan().
  virtual protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                                       SensorPlan* plan, uint16_t* detail) = 0;
  // Starts sampling as the sample source was configured, until it is stopped. False: no sensor is
  // to be sampled, or more than the bus can carry.
  virtual bool start_sampling() = 0;
  // Waits (below 1 ms) until the bus is idle after the sample source was stopped.
  virtual void finish_sampling() = 0;

  virtual uint16_t stack_free_bytes() = 0;

 protected:
  ~Board() = default;
};

// What does not change while the board runs.
struct BoardFacts {
  uint8_t kind;  // enum protocol::Board
  uint8_t reset_cause;
  uint8_t device_id[10];
};

}  // namespace opjoule

#endif  // OPJOULE_METER_BOARD_H_
