// Moves samples from the source's queues into frames, and keeps each sensor's totals. Main loop.
#ifndef OPJOULE_METER_SAMPLE_CARRIER_H_
#define OPJOULE_METER_SAMPLE_CARRIER_H_

#include <stdint.h>

#include "controller.h"
#include "sample_framer.h"
#include "sample_source.h"

namespace opjoule {

class SampleCarrier {
 public:
  SampleCarrier(SampleSource& source, SampleFramer& framer, Controller& controller)
      : source_(source), framer_(framer), controller_(controller) {}

  void set_samples_per_frame(uint8_t sensor, uint8_t samples) {
    samples_per_frame_[sensor] = samples;
  }

  // To be called before sampling starts: sets the totals to 0.
  void restart();

  // Moves all samples that the line has room for.
  void run();

  // So many samples wait that they must go before an answer, which may have to wait for an idle
  // line (5 ms at most).
  bool behind();

  // Nothing is left in the queues.
  bool empty();

  const Totals& totals(uint8_t sensor) const { return totals_[sensor]; }

 private:
  bool carry_sensor(uint8_t sensor);
  void add(uint8_t sensor, const Tally& tally);

  SampleSource& source_;
  SampleFramer& framer_;
  Controller& controller_;
  Totals totals_[kMaxSensors] = {};
  uint8_t samples_per_frame_[kMaxSensors] = {};
};

}  // namespace opjoule

#endif  // OPJOULE_METER_SAMPLE_CARRIER_H_
