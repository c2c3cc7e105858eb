// Moves samples from the source's queues into frames, and keeps each sensor's totals. Main loop.
#ifndef OPJOULE_METER_SAMPLE_CARRIER_H_
#define OPJOULE_METER_SAMPLE_CARRIER_H_

#include <stdint.h>

#include "board.h"
#include "sample_framer.h"
#include "sample_source.h"

namespace opjoule {

class SampleCarrier {
 public:
  SampleCarrier(SampleSource& source, SampleFramer& framer, Board& board)
      : source_(source), framer_(framer), board_(board) {}

  void set_samples_per_frame(uint8_t sensor, uint8_t samples) {
    samples_per_frame_[sensor] = samples;
  }

  // Before sampling is started: totals begin at 0.
  void restart();

  // Carries what there is, as far as the line has room.
  void run();

  // So much waits that it goes before an answer, which may wait for an idle line (5 ms at most).
  bool behind();

  // Nothing is left in the queues.
  bool empty();

  const Totals& totals(uint8_t sensor) const { return totals_[sensor]; }

 private:
  bool carry_sensor(uint8_t sensor);
  void add(uint8_t sensor, const Tally& tally);

  SampleSource& source_;
  SampleFramer& framer_;
  Board& board_;
  Totals totals_[kMaxSensors] = {};
  uint8_t samples_per_frame_[kMaxSensors] = {};
};

}  // namespace opjoule

#endif  // OPJOULE_METER_SAMPLE_CARRIER_H_
