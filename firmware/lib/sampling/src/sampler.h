// Shares the bus among the sensors: decides after each transfer which one comes next, and when.
// advance() and digest() run in the bus interrupt; everything else with the bus idle.
#ifndef OPJOULE_SAMPLING_SAMPLER_H_
#define OPJOULE_SAMPLING_SAMPLER_H_

#include <stdint.h>

#include "channel.h"
#include "sample_source.h"

namespace opjoule {

class Sampler : public SampleSource {
 public:
  explicit Sampler(FaultCounters& faults) : faults_(faults) {}

  // False: no sensor is to be sampled, or more than the bus can carry.
  bool start(uint32_t now_ticks);

  // The transfer that comes next, and its start; only while running.
  const BusTransfer& next_transfer() const { return current_->transfer(); }
  uint32_t next_start_ticks() const { return current_->start_ticks(); }
  bool next_sets_pointer() const { return current_->set_pointer(); }

  // The sensors' common ALERT line went low at `ticks`. True: next_transfer() is to start at once,
  // if the bus is free. With several sensors it is not known whose alert it was, and polling goes
  // on.
  bool alert(uint32_t ticks);
  bool alerted() const { return current_->alerted(); }

  // Called when the transfer given by next_transfer() has ended: prepares the next one, quickly.
  // True: it is to start at once, whatever next_start_ticks() says.
  bool advance(const BusResult& result);
  // Called afterwards, while the bus is busy again: takes in the results of the transfer that
  // ended.
  void digest(const BusResult& result);

 private:
  bool bus_carries_all() const;
  void choose();

  FaultCounters& faults_;
  Channel channels_[kMaxSensors];
  Channel* current_ = nullptr;  // whose transfer is planned or under way
  Channel* done_ = nullptr;     // whose was the one before
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_SAMPLER_H_
