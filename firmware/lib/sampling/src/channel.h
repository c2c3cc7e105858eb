// One sensor being sampled: decides which transfer comes next, and takes in the results of the last
// one.
//
// Pairs:  poll until ready -> read shunt, (flag cleared), bus -> poll ...
// Shunts: poll until ready -> read shunt, (flag cleared) -> poll ..., and every bus_every
//         conversions poll until ready -> write bus mode -> read shunt -> poll until ready -> write
//         shunt mode (clears the flag) -> read bus -> poll ... This order keeps the time without
//         a current reading as short as possible.
// A value is read only once its flag has been seen, in a transfer of its own: a poll is timed to
// meet the update. After a failure the sensor is configured anew, after a pause.
//
// The data sheets do not say whether a new mode ends the conversion under way. A chip that finishes
// it sets the flag earlier than the new mode's first conversion could. It is found out by that, and
// each mode is then written one conversion ahead:
//         conversions poll until ready -> write bus mode -> read shunt -> poll until ready -> write
//         shunt mode -> read shunt -> poll until ready -> read bus, (flag cleared) -> poll ...
// The first flag after a setup may be the old conversion's on any chip: it is passed over.
//
// Everything runs in the bus interrupt except start(), which is called first, with the bus idle.
#ifndef OPJOULE_SAMPLING_CHANNEL_H_
#define OPJOULE_SAMPLING_CHANNEL_H_

#include <stdint.h>

#include "bus_transfer.h"
#include "conversion_clock.h"
#include "fault_counters.h"
#include "sample_queue.h"
#include "sensor_plan.h"

namespace opjoule {

class Channel {
 public:
  // Samples sensor number `sensor` as `plan` says, which must outlive it. `alone`: no other sensor
  // uses the bus.
  void start(const SensorPlan& plan, uint8_t sensor, bool alone, uint32_t now_ticks);

  // The next transfer; it should start at start_ticks() or as soon after as the bus is free.
  const BusTransfer& transfer() const { return *transfer_; }
  uint32_t start_ticks() const { return start_ticks_; }
  // The first register's pointer must be written: the chip keeps it from one read to the next.
  bool set_pointer() const { return transfer_->registers[0] != pointer_; }

  // Called at the end of a transfer: prepares the next one, quickly. True: the next one is to start
  // at once, so that the reads of one conversion stay together.
  bool advance(const BusResult& result);
  // The sensor's ALERT line went low at `ticks`: a conversion has ended. True: the channel was
  // waiting for it, and its next transfer is to start at once. Once alerts come, a poll only
  // fetches what an alert has announced.
  bool alert(uint32_t ticks);
  bool alerted() const { return alerted_; }
  // Takes in the results of that transfer, after advance() and before its next call. May take
  // longer: the bus is busy with the next transfer.
  void digest(const BusResult& result, SampleQueue& queue, FaultCounters& faults);

 private:
  enum class Step : uint8_t {
    write_setup,
    write_sample_mode,
    poll,
    read_sample,
    write_bus_mode,
    poll_bus,
    return_to_sample_mode,
    read_bus,
    check_configuration,
    write_ahead,  // the sample mode, during the last conversion before a bus reading
    pass_flag,    // clears a flag that may be the old mode's
    pass_bus_flag,
  };

  bool advance_rarely(const BusResult& result);
  uint16_t bus_mode() const;
  uint32_t bus_ticks() const;
  bool bus_due() const;
  uint32_t first_bus_look_ticks() const;
  bool after_ready(const BusResult& result);
  bool after_sample();
  void shorten_row();
  bool pass(Step step);
  void plan_bus_read();
  bool after_bus_poll(const BusResult& result);
  bool after_return(const BusResult& result);
  bool after_bus_reading(const BusResult& result);
  bool is_ready(const BusResult& result) const;
  bool is_late(const BusResult& result) const;
  void digest_bus(const BusResult& result, SampleQueue& queue, FaultCounters& faults);
  void digest_poll(const BusResult& result, FaultCounters& faults);
  void digest_sample(const BusResult& result, SampleQueue& queue, FaultCounters& faults);
  void digest_configuration(const BusResult& result, FaultCounters& faults);
  bool in_time(const BusResult& result) const;
  void lost(protocol::Fault fault, uint32_t ticks, FaultCounters& faults, uint8_t times = 1);

  int32_t shunt_code(const BusResult& result) const;
  uint32_t bus_code(const BusResult& result, uint8_t from) const;
  void set_up();
  void next_setup();
  void plan_write(Step step, uint16_t mode);
  void plan_write_ahead();
  void plan_read(Step step, uint8_t reg);
  void plan_poll();
  void plan_bus_poll(uint32_t look_ticks);
  void first_poll(uint32_t look_ticks, FaultCounters& faults);

  const SensorPlan* plan_;
  ConversionClock clock_;
  BusTransfer poll_;
  BusTransfer read_sample_;
  BusTransfer other_;
  const BusTransfer* transfer_;
  uint32_t start_ticks_;
  uint32_t bus_end_ticks_;
  uint32_t bus_written_ticks_;  // when the bus mode was
  uint32_t alert_ticks_;
  uint32_t aimed_ticks_;   // the time at which the last poll was to read the flag
  uint16_t until_bus_;     // conversions to the next bus reading
  uint16_t until_check_;   // conversions to the next look at the configuration
  uint8_t lead_ticks_[2];  // from a poll's start to its look, without and with pointer
  uint8_t setups_left_;
  uint8_t late_polls_;  // one after the other
  uint8_t sensor_;
  uint8_t pointer_;        // where the chip's register pointer stands
  uint8_t flags_;          // of the next sample
  Step step_;              // of the transfer planned or under way
  Step done_;              // of the one before
  bool alerted_ : 1;       // the conversion waited for has been announced
  bool alerts_ : 1;        // the previous one was
  bool sample_waits_ : 1;  // a conversion has ended, and a mode is written before its reading
  bool passes_ : 1;        // the next flag may be that of the mode before,
  bool passes_bus_ : 1;    // and the next one in bus mode
  bool finishes_ : 1;      // the chip finishes a conversion before it changes its mode
  bool found_out_ : 1;     // in this bus reading
  bool aborts_ : 1;        // a bus reading has shown that it does not finish them
  bool ahead_ : 1;  // the bus mode is written, and the conversion under way is finished first
  bool alone_ : 1;
  bool cleared_late_ : 1;  // the latest bus reading cleared the flag of a row's first conversion
  bool bus_clipped_ : 1;   // the latest bus reading was at the end of its range
  bool overdue_ : 1;       // the flag has not come when it should have
  bool placed_ : 1;        // the poll under way was sent at a chosen moment, not at once
  bool placed_with_pointer_ : 1;  // it was, and wrote the register pointer first
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_CHANNEL_H_
