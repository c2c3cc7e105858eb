#include "sample_framer.h"

namespace opjoule {

using protocol::Mode;

namespace {
constexpr uint8_t kOverflow = static_cast<uint8_t>(protocol::Flag::overflow);

uint64_t whole(const Sum& sum) { return (static_cast<uint64_t>(sum.high) << 32) | sum.low; }
}  // namespace

bool SampleFramer::append(const Sample& sample, const SampleFormat& format, Totals& totals) {
  if (sample.flags & kBusOnly) {
    totals.bus = sample.bus;
    totals.bus_end_ticks = sample.end_ticks;
    return true;
  }
  if (ring_.room() < kRoomBytes) return false;
  const uint32_t delta_ticks = sample.end_ticks - last_end_ticks_;
  // A frame's flags tell what came before its first sample, and whether any sample overflowed.
  const bool fits = count_ != 0 && sample.sensor == sensor_ &&
                    (sample.flags & ~flags_ & kOverflow) == 0 && (sample.flags & ~kOverflow) == 0 &&
                    delta_ticks <= 0xFFFF;
  if (!fits) {
    close();
    begin(sample, format, totals);
  }
  const bool pairs = format.mode == Mode::pairs;
  const uint32_t bus = pairs ? sample.bus : totals.bus;
  encoder_.put16(count_ == 0 ? 0 : static_cast<uint16_t>(delta_ticks));
  if (format.wide) {
    encoder_.put32(static_cast<uint32_t>(sample.shunt));
    encoder_.put32(bus);
  } else {
    encoder_.put16(static_cast<uint16_t>(sample.shunt));
    if (pairs) encoder_.put16(static_cast<uint16_t>(bus));
  }
  last_end_ticks_ = sample.end_ticks;
  ++count_;
  ++totals.conversions;
  if (sample.flags & kOverflow) totals.clipped = static_cast<uint16_t>(totals.clipped + 1);
  totals.shunt_sum.add(sample.shunt);
  if (pairs || format.wide) totals.bus_sum.add(static_cast<int32_t>(bus));
  if (count_ >= format.samples_per_frame) close();
  return true;
}

void SampleFramer::close() {
  if (count_ == 0) return;
  encoder_.end();
  count_ = 0;
}

void SampleFramer::begin(const Sample& sample, const SampleFormat& format, const Totals& totals) {
  sensor_ = sample.sensor;
  flags_ = sample.flags;
  if (format.wide) {
    encoder_.begin(protocol::Wide::kType, seq_++);
    protocol::Wide{sensor_,
                   flags_,
                   totals.conversions,
                   sample.end_ticks,
                   whole(totals.shunt_sum),
                   whole(totals.bus_sum),
                   totals.clipped}
        .write(encoder_);
  } else if (format.mode == Mode::pairs) {
    encoder_.begin(protocol::Pairs::kType, seq_++);
    protocol::Pairs{sensor_,
                    flags_,
                    totals.conversions,
                    sample.end_ticks,
                    totals.shunt_sum.low,
                    totals.bus_sum.low,
                    totals.clipped}
        .write(encoder_);
  } else {
    encoder_.begin(protocol::Shunts::kType, seq_++);
    protocol::Shunts{sensor_,
                     flags_,
                     totals.conversions,
                     sample.end_ticks,
                     totals.shunt_sum.low,
                     totals.clipped,
                     static_cast<uint16_t>(totals.bus),
                     sample.end_ticks - totals.bus_end_ticks}
        .write(encoder_);
  }
}

}  // namespace opjoule
