// What the meter needs of the part that samples its sensors: how each is to be sampled, whether
// sampling is under way, and the queue of samples. There are two: Sampler (registers, by interrupt)
// and LibrarySampler (Arduino framework).
#ifndef OPJOULE_SAMPLING_SAMPLE_SOURCE_H_
#define OPJOULE_SAMPLING_SAMPLE_SOURCE_H_

#include <stdint.h>

#include "sample_queue.h"
#include "sensor_plan.h"

namespace opjoule {

class SampleSource {
 public:
  // How a sensor is to be sampled; mode off: not at all. Only while nothing is sampled.
  void configure(uint8_t sensor, const SensorPlan& plan) { plans_[sensor] = plan; }
  const SensorPlan& plan(uint8_t sensor) const { return plans_[sensor]; }

  void stop() { running_ = false; }
  bool running() const { return running_; }
  uint8_t active_count() const { return active_count_; }

  SampleQueue& queue() { return queue_; }

 protected:
  // Counts the sensors that are to be sampled.
  void count_active() {
    active_count_ = 0;
    for (const SensorPlan& plan : plans_) {
      if (plan.mode != protocol::Mode::off) ++active_count_;
    }
  }

  SampleQueue queue_;
  SensorPlan plans_[kMaxSensors] = {};
  uint8_t active_count_ = 0;
  volatile bool running_ = false;
};

}  // namespace opjoule

#endif  // OPJOULE_SAMPLING_SAMPLE_SOURCE_H_
