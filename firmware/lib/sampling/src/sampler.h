// Shares the bus among the sensors: after each transfer it says which comes next and when.
// advance() and digest() run in the bus interrupt; the rest with the bus idle.
#ifndef OPJOULE_SAMPLING_SAMPLER_H_
#define OPJOULE_SAMPLING_SAMPLER_H_

#include <stdint.h>

#include "channel.h"
#include "even_channel.h"
#include "sample_source.h"

namespace opjoule {

class Sampler : public SampleSource {
 public:
  explicit Sampler(FaultCounters& faults)
      : SampleSource(polled_.queue, &even_.queue), faults_(faults) {
    polled_.queue.clear();
  }

  // False: no sensor is to be sampled, or more than the bus can carry (even rows suffer no other
  // sensor beside them).
  bool start(uint32_t now_ticks);
  // Of a transfer with kPaced.
  PacedRead& paced() { return even_.channel.paced(); }

  // The transfer that comes next, and its start; only while running.
  const BusTransfer& next_transfer() const {
    return is_even_ ? even_.channel.transfer() : current_->transfer();
  }
  uint32_t next_start_ticks() const {
    return is_even_ ? even_.channel.start_ticks() : current_->start_ticks();
  }
  bool next_sets_pointer() const {
    return is_even_ ? even_.channel.set_pointer() : current_->set_pointer();
  }

  // The sensors' common ALERT line went low at `ticks`. True: next_transfer() is to start at once,
  // if the bus is free. With several sensors nobody knows whose it was: polls go on.
  bool alert(uint32_t ticks);
  bool alerted() const { return !is_even_ && current_->alerted(); }

  // The transfer given by next_transfer() has ended: makes the next one ready, quickly. True: it is
  // to start at once, whatever next_start_ticks() says.
  bool advance(const BusResult& result);
  // Afterwards, while the bus is busy again: what came of the transfer that ended.
  void digest(const BusResult& result);

 private:
  struct Polled {
    SampleQueue queue;
    Channel channels[kMaxSensors];
  };
  struct Even {
    EvenQueue queue;
    EvenChannel channel;
  };

  bool bus_carries_all() const;
  void choose();

  FaultCounters& faults_;
  union {  // never both
    Polled polled_;
    Even even_;
  };
  Channel* current_ = nullptr;  // whose transfer is planned or under way
  Channel* done_ = nullptr;     // whose was before
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_SAMPLER_H_
