// Puts samples into frames, one at a time, and keeps each sensor's count and running sums, which
// every frame's header carries. At most one frame is open; any other message closes it first. Main
// loop only.
#ifndef OPJOULE_LINK_SAMPLE_FRAMER_H_
#define OPJOULE_LINK_SAMPLE_FRAMER_H_

#include <stdint.h>

#include "frame_encoder.h"
#include "messages.h"
#include "sample_queue.h"
#include "transmit_ring.h"

namespace opjoule {

using Encoder = protocol::FrameEncoder<TransmitRing>;

// Of one sensor since start. Most messages carry the sums modulo 2^32.
struct Totals {
  uint32_t conversions;
  Sum shunt_sum;
  Sum bus_sum;
  uint32_t bus_end_ticks;  // shunt modes: of the latest bus reading
  uint32_t bus;
  uint16_t clipped;  // conversions with Flag::overflow, modulo 2^16
};

// How one sensor's samples are sent.
struct SampleFormat {
  protocol::Mode mode;
  bool wide;  // message wide, for 20-bit codes
  uint8_t samples_per_frame;
};

class SampleFramer {
 public:
  SampleFramer(TransmitRing& ring, Encoder& encoder, uint32_t& seq)
      : ring_(ring), encoder_(encoder), seq_(seq) {}

  // Room that append() may need at most.
  static constexpr uint8_t kRoomBytes =
      protocol::encoded_bytes(protocol::Wide::kBytes + protocol::WideItem::kBytes);

  // One conversion of a sensor. False: no room in the ring now, try again.
  bool append(const Sample& sample, const SampleFormat& format, Totals& totals);

  bool open() const { return count_ != 0; }
  void close();

 private:
  void begin(const Sample& sample, const SampleFormat& format, const Totals& totals);

  TransmitRing& ring_;
  Encoder& encoder_;
  uint32_t& seq_;
  uint32_t last_end_ticks_ = 0;
  uint8_t sensor_ = 0;
  uint8_t flags_ = 0;
  uint8_t count_ = 0;  // samples in the open frame, 0: none open
};

}  // namespace opjoule

#endif  // OPJOULE_LINK_SAMPLE_FRAMER_H_
