#include "sampler.h"

#include "tick_clock.h"

namespace opjoule {

using protocol::Mode;

namespace {

// Ticks on the bus, from traces of the simulated rig: the polls of one conversion with the time
// between transfers; one register read with its pointer; and what a third byte adds.
constexpr uint32_t kPollsTicks = 205 * kTicksPerUs;
constexpr uint32_t kReadTicks = 132 * kTicksPerUs;
constexpr uint32_t kThirdByteTicks = 24 * kTicksPerUs;
constexpr uint32_t kUntilShuntTicks = 290 * kTicksPerUs;

// How long one conversion of this sensor keeps the bus busy.
uint32_t busy_ticks(const SensorPlan& plan) {
  uint8_t reads = plan.mode == Mode::pairs ? 2 : 1;
  uint32_t ticks = kPollsTicks;
  if (plan.map->wide) ticks += reads * kThirdByteTicks;
  if (plan.map->clear != kNoRegister) ++reads;
  return ticks + reads * kReadTicks;
}

}  // namespace

bool Sampler::start(uint32_t now_ticks) {
  count_active();
  if (active_count_ == 0) return false;
  if (active_count_ > 1 && !bus_carries_all()) return false;
  queue_.clear();
  for (uint8_t sensor = 0; sensor < kMaxSensors; ++sensor) {
    if (plans_[sensor].mode == Mode::off) continue;
    channels_[sensor].start(plans_[sensor], sensor, active_count_ == 1, now_ticks);
  }
  choose();
  running_ = true;
  return true;
}

// Whether each sensor's shunt value can be read before the next one replaces it, even if all other
// sensors have just begun their reads, and whether the bus has time for all of them.
bool Sampler::bus_carries_all() const {
  uint32_t all_ticks = 0;
  for (const SensorPlan& plan : plans_) {
    if (plan.mode != Mode::off) all_ticks += busy_ticks(plan);
  }
  for (const SensorPlan& plan : plans_) {
    if (plan.mode == Mode::off) continue;
    const uint32_t wait_ticks = all_ticks - busy_ticks(plan) + kUntilShuntTicks;
    // A chip may be an eighth faster than its data sheet says.
    const uint32_t nominal_ticks = (plan.sample_ticks >> 8) * plan.shunt_share_q8;
    if (wait_ticks > nominal_ticks - nominal_ticks / 8) return false;
    if (all_ticks > plan.sample_ticks - plan.sample_ticks / 8) return false;
  }
  return true;
}

bool Sampler::alert(uint32_t ticks) {
  return running_ && active_count_ == 1 && current_->alert(ticks);
}

bool Sampler::advance(const BusResult& result) {
  done_ = current_;
  if (current_->advance(result)) return true;
  if (active_count_ > 1) choose();
  return false;
}

void Sampler::digest(const BusResult& result) { done_->digest(result, queue_, faults_); }

// The sensor whose transfer is due first.
void Sampler::choose() {
  Channel* best = nullptr;
  for (uint8_t sensor = 0; sensor < kMaxSensors; ++sensor) {
    if (plans_[sensor].mode == Mode::off) continue;
    Channel& channel = channels_[sensor];
    if (best == nullptr || ticks_between(channel.start_ticks(), best->start_ticks()) > 0) {
      best = &channel;
    }
  }
  current_ = best;
}

}  // namespace opjoule
