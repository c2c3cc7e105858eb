// At 12,000 conversions a second the line's bytes take most of the time: speed before size here.
#ifdef __AVR__
#pragma GCC optimize("O2")
#endif

#include "sample_framer.h"

namespace opjoule {

bool SampleFramer::append_even(const EvenBlock& block, uint16_t taken, uint8_t count,
                               const EvenQueue& codes, int16_t full_scale, Totals& totals) {
  if (ring_.room() < protocol::encoded_bytes(protocol::ShuntsEven::kBytes) + 2 * count + 4) {
    return false;
  }
  close();
  uint8_t flags = taken == 0 ? block.flags : 0;
  for (uint8_t i = 0; i < count; ++i) {
    const int16_t code = codes.at(i);
    if (code >= full_scale || code <= -full_scale) {
      flags |= static_cast<uint8_t>(protocol::Flag::overflow);
    }
  }
  const uint32_t first_end_ticks = block.first_end_ticks + ((block.period_q8 * taken) >> 8);
  encoder_.begin(protocol::ShuntsEven::kType, seq_++);
  protocol::ShuntsEven{block.sensor,
                       flags,
                       totals.conversions,
                       first_end_ticks,
                       (block.period_q8 * static_cast<uint32_t>(count - 1)) >> 8,
                       totals.shunt_sum.low,
                       block.bus,
                       first_end_ticks - block.bus_end_ticks}
      .write(encoder_);
  int32_t shunt_sum = 0;
  for (uint8_t i = 0; i < count; ++i) {
    const int16_t code = codes.at(i);
    encoder_.put16(static_cast<uint16_t>(code));
    shunt_sum += code;
  }
  totals.shunt_sum.add(shunt_sum);
  totals.conversions += count;
  encoder_.end();
  return true;
}

}  // namespace opjoule
