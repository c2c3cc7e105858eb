#include "sample_carrier.h"

namespace opjoule {

using protocol::Mode;

namespace {
// The places left take the samples that come while an answer is written: 4.2 ms in the default
// mode.
constexpr uint8_t kBehind = SampleQueue::kCapacity - 8;
}  // namespace

void SampleCarrier::restart() {
  for (Totals& totals : totals_) totals = Totals{};
}

bool SampleCarrier::behind() { return source_.queue().size() >= kBehind; }

bool SampleCarrier::empty() { return source_.queue().size() == 0; }

// Samples of several sensors alternate, and each would close the other's frame: so it waits until
// half of the queue is filled, then takes one sensor's samples after the other's.
void SampleCarrier::run() {
  SampleQueue& queue = source_.queue();
  const bool alternating = source_.active_count() > 1 && source_.running();
  if (alternating && queue.size() != 0 && queue.size() < SampleQueue::kCapacity / 2) return;
  for (uint8_t sensor = 0; sensor < kMaxSensors; ++sensor) {
    if (!carry_sensor(sensor)) break;
  }
  Tally tally;
  for (uint8_t sensor = 0; sensor < kMaxSensors; ++sensor) {
    if (queue.take_tally(sensor, &tally)) add(sensor, tally);
  }
}

// False: the line has no room now.
bool SampleCarrier::carry_sensor(uint8_t sensor) {
  SampleQueue& queue = source_.queue();
  const SensorPlan& plan = source_.plan(sensor);
  if (plan.mode == Mode::off) return true;
  SampleFormat format = {plan.mode, plan.map->wide, samples_per_frame_[sensor]};
  constexpr uint8_t kMostWide = protocol::max_items<protocol::Wide>();
  if (format.wide && format.samples_per_frame > kMostWide) format.samples_per_frame = kMostWide;
  uint8_t place = 0;
  uint8_t left = queue.size();
  while (left != 0) {
    const Sample& sample = queue.at(place);
    if (sample.flags == kTaken || sample.sensor != sensor) {
      ++place;
      --left;
      continue;
    }
    if (!framer_.append(sample, format, totals_[sensor])) return false;
    queue.take(place);
    // Its place is freed at once, since new samples come in meanwhile; not if earlier ones still
    // wait.
    const uint8_t freed = queue.free_taken();
    if (freed == 0) ++place;
    left = static_cast<uint8_t>(left - (freed == 0 ? 1 : freed));
    controller_.start_transmit();
  }
  return true;
}

// Conversions that did not fit into the queue: counted, their charge in the sums, no stamps.
void SampleCarrier::add(uint8_t sensor, const Tally& tally) {
  framer_.close();
  totals_[sensor].conversions += tally.count;
  totals_[sensor].clipped = static_cast<uint16_t>(totals_[sensor].clipped + tally.clipped);
  totals_[sensor].shunt_sum.add(tally.shunt_sum);
  totals_[sensor].bus_sum.add(tally.bus_sum);
}

}  // namespace opjoule
