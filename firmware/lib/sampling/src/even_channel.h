// One sensor converting the shunt voltage faster than its ready flag can be asked (9 to 11 bit), or
// with the least bus load: reads follow a schedule.
//
// First the flag is followed through 64 conversions of 12 bit: that measures the chip's oscillator
// against the meter's clock, to about 0.02 %. All conversion times are whole numbers of its cycles
// (table 5 of the data sheet: 20 us + 64 us << n), so the time of the wanted conversions follows.
// Then, block after block: the bus voltage is converted and read, shunt conversions are started
// (the write sets their phase anew), and bus_every of them are read, each within the next one. The
// end of each bus conversion tells how long after its write a conversion begins. Every 2048 blocks
// (about 13 s at 9 bit) the oscillator is measured again, which takes 40 ms.
//
// Runs in the bus interrupt; start() with the bus idle. One sensor at a time. Without a
// constructor, as it shares its memory (sampler.h): start() comes first.
#ifndef OPJOULE_SAMPLING_EVEN_CHANNEL_H_
#define OPJOULE_SAMPLING_EVEN_CHANNEL_H_

#include <stdint.h>

#include "bus_transfer.h"
#include "conversion_clock.h"
#include "even_queue.h"
#include "fault_counters.h"
#include "sensor_plan.h"

namespace opjoule {

class EvenChannel {
 public:
  void start(const SensorPlan& plan, uint8_t sensor, uint32_t now_ticks);

  const BusTransfer& transfer() const { return transfer_; }
  uint32_t start_ticks() const { return start_ticks_; }
  bool set_pointer() const { return transfer_.registers[0] != pointer_; }
  PacedRead& paced() { return paced_; }

  // As Channel's.
  bool advance(const BusResult& result, EvenQueue& queue);
  void digest(const BusResult& result, EvenQueue& queue, FaultCounters& faults);

 private:
  enum class Step : uint8_t {
    write_calibration,
    poll,
    clear_ready,
    write_bus_mode,
    poll_bus,
    write_sample_mode,
    read_row,
  };

  bool is_ready(const BusResult& result) const;
  void take_bus(const BusResult& result);
  int16_t bus_look_ticks() const;
  void prepare_row(EvenQueue& queue);
  bool begin_row(uint32_t written_ticks, EvenQueue& queue);
  void row_ended(EvenQueue& queue, FaultCounters& faults, uint32_t ticks);
  void bus_looked(uint32_t after_write_ticks, bool ready);
  void shift_bracket(int8_t ticks);
  void calibrate();
  void calibrated();
  uint32_t scaled(uint32_t ticks) const;
  bool plan_at_once(Step step);
  bool plan_look(Step step, uint32_t look_ticks);

  const SensorPlan* plan_;
  ConversionClock clock_;
  BusTransfer transfer_;
  PacedRead paced_;
  uint32_t start_ticks_;
  uint32_t written_ticks_;    // the last mode write
  uint32_t row_first_end_;    // after the write that starts the conversions,
  uint32_t row_first_start_;  // and the start of the first read
  uint32_t bus_period_ticks_;
  uint32_t bus_end_ticks_;
  // From the write to the end of the bus conversion, beyond its own time: between low and high.
  int16_t low_ticks_;
  int16_t high_ticks_;
  int16_t start_delay_ticks_;  // their middle
  uint16_t bus_;
  uint16_t blocks_;  // since the calibration
  uint8_t calibrations_left_;
  uint8_t sensor_;
  uint8_t pointer_;
  uint8_t flags_;
  Step step_;
  bool row_open_;  // in the queue, begun or to be begun
  Step done_;
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_EVEN_CHANNEL_H_
