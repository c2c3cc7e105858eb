// The results of a channel's transfers: samples, the clock of its conversions, faults.
#include "channel.h"
#include "tick_clock.h"

namespace opjoule {

using protocol::Fault;
using protocol::Flag;
using protocol::Mode;

namespace {
constexpr int32_t kLeadTrustTicks = 60;  // a poll later than this waited for the bus
constexpr int32_t kMarginTicks = 8;
// From one poll to the next if there is no pause between them.
constexpr uint32_t kPollDistanceTicks = 260;
// Alone on the bus, late polls still find every conversion as long as the bus is faster than the
// converter; before long one of them then comes early. With several sensors there is no such sign.
constexpr uint8_t kMostLatePollsAlone = 250;
constexpr uint8_t kMostLatePolls = 8;
}  // namespace

void Channel::digest(const BusResult& result, SampleQueue& queue, FaultCounters& faults) {
  if (!result.ok) return lost(result.fault, result.end_ticks, faults);
  switch (done_) {
    case Step::poll:
      return digest_poll(result, faults);
    case Step::poll_bus:
      if (step_ == Step::write_ahead) clock_.ready(result.look_ticks(0));
      return;
    case Step::read_sample:
      return digest_sample(result, queue, faults);
    case Step::read_bus:
      return digest_bus(result, queue, faults);
    case Step::check_configuration:
      return digest_configuration(result, faults);
    default:
      return;
  }
}

// This voltage belongs to all samples until the next bus reading.
void Channel::digest_bus(const BusResult& result, SampleQueue& queue, FaultCounters& faults) {
  if (cleared_late_) lost(Fault::conversion_missed, result.end_ticks, faults);
  const uint32_t code = bus_code(result, 0);
  bus_clipped_ = code >= plan_->bus_full_scale;
  queue.push({bus_end_ticks_, 0, code, kBusOnly, sensor_});
  flags_ |= flag_bit(Flag::gap_before);
}

void Channel::digest_poll(const BusResult& result, FaultCounters& faults) {
  const uint32_t look_ticks = result.look_ticks(0);
  if (placed_) first_poll(look_ticks, faults);
  placed_ = false;
  if (!is_ready(result)) {
    late_polls_ = 0;
    clock_.not_ready(look_ticks);
    // The old mode's conversion may come before.
    overdue_ = clock_.overdue(look_ticks - bus_ticks());
    return;
  }
  if (step_ == Step::pass_flag) return clock_.begin_row(look_ticks - kPollDistanceTicks);
  alerts_ = alerted_;
  const uint8_t missed = alerted_ ? clock_.alerted(alert_ticks_) : clock_.ready(look_ticks);
  alerted_ = false;
  if (missed != 0) lost(Fault::conversion_missed, look_ticks, faults, missed);
}

void Channel::digest_sample(const BusResult& result, SampleQueue& queue, FaultCounters& faults) {
  const bool sound = in_time(result);
  sample_waits_ = false;
  if (!sound) return lost(Fault::conversion_missed, result.end_ticks, faults);
  Sample sample = {clock_.end_ticks(), shunt_code(result), 0, flags_, sensor_};
  flags_ = 0;
  if (plan_->mode == Mode::pairs) {
    // The bus register comes last, preceded on some chips by the register that clears the flag.
    uint8_t from = plan_->map->wide ? 3 : 2;
    if (plan_->map->clear != kNoRegister) from = static_cast<uint8_t>(from + 2);
    sample.bus = bus_code(result, from);
    bus_clipped_ = sample.bus >= plan_->bus_full_scale ||
                   (result.value16(from) & plan_->map->overflow_mask) != 0;
  }
  if (bus_clipped_ || sample.shunt >= plan_->shunt_full_scale ||
      sample.shunt <= -plan_->shunt_full_scale) {
    sample.flags |= flag_bit(Flag::overflow);
  }
  if (sample.flags & flag_bit(Flag::overflow)) {
    faults.count(Fault::shunt_overflow, sensor_, result.end_ticks);
  }
  if (!queue.push(sample)) faults.count(Fault::transmit_full, sensor_, result.end_ticks);
}

int32_t Channel::shunt_code(const BusResult& result) const {
  const int32_t code = plan_->map->wide ? static_cast<int32_t>(result.value24(0) << 8) >> 8
                                        : static_cast<int16_t>(result.value16());
  return code >> plan_->map->shunt_shift;
}

uint32_t Channel::bus_code(const BusResult& result, uint8_t from) const {
  if (plan_->map->wide) return result.value24(from) >> plan_->map->bus_shift;
  return static_cast<uint16_t>(result.value16(from) >> plan_->map->bus_shift);
}

// After its supply has failed, a sensor converts with its default configuration.
void Channel::digest_configuration(const BusResult& result, FaultCounters& faults) {
  if (step_ == Step::poll) return;
  const bool changed = result.value16() != plan_->sample_mode;
  lost(changed ? Fault::sensor_reset : Fault::conversion_missed, result.end_ticks, faults);
}

// The shunt value was read before the next one replaced it, and the flag was cleared before it was
// set again: judged by the chip's own period, which the clock has measured.
bool Channel::in_time(const BusResult& result) const {
  const uint32_t end_ticks = clock_.end_ticks();
  const uint32_t period_ticks = clock_.period_ticks();
  if (sample_waits_ && step_ == Step::poll_bus) {
    // It was read in bus mode, where no shunt conversion overwrites it; so only the change to that
    // mode had to be in time. If the shunt mode is written again already, its first conversion ends
    // a period later.
    const int32_t age = ahead_ ? ticks_between(bus_written_ticks_, result.look_ticks(0))
                               : ticks_between(end_ticks, bus_written_ticks_);
    return age < static_cast<int32_t>(period_ticks) - kMarginTicks;
  }
  const uint32_t shunt_valid_ticks = (period_ticks * plan_->shunt_share_q8) >> 8;
  const uint8_t clear = plan_->map->clear == kNoRegister ? 0 : 1;
  const int32_t shunt_age = ticks_between(end_ticks, result.look_ticks(0));
  // With finishes_ a write clears the flag, before the conversion under way has ended.
  const int32_t clear_age = ticks_between(end_ticks, result.look_ticks(sample_waits_ ? 0 : clear));
  return shunt_age < static_cast<int32_t>(shunt_valid_ticks) - kMarginTicks &&
         clear_age < static_cast<int32_t>(period_ticks) - kMarginTicks;
}

void Channel::lost(Fault fault, uint32_t ticks, FaultCounters& faults, uint8_t times) {
  faults.count(fault, sensor_, ticks, times);
  flags_ |= flag_bit(Flag::missed_before);
}

// Corrects the lead of the next poll by how late or early this one read the flag, if the bus seems
// to have been free. Polls that are always too late cannot tell where conversions end, nor whether
// one was missed: that counts as a fault.
void Channel::first_poll(uint32_t look_ticks, FaultCounters& faults) {
  const int32_t late_ticks = ticks_between(aimed_ticks_, look_ticks);
  uint8_t& lead = lead_ticks_[placed_with_pointer_];
  if (late_ticks > 0 && late_ticks < kLeadTrustTicks && lead != UINT8_MAX) ++lead;
  if (late_ticks < 0 && lead != 0) --lead;  // nothing but the lead makes a poll early
  // With several sensors, one may have to wait for another's reads.
  const int32_t most_ticks =
      alone_ ? kLeadTrustTicks
             : static_cast<int32_t>(clock_.period_ticks() / 2 - clock_.period_ticks() / 8);
  if (late_ticks < most_ticks) {
    late_polls_ = 0;
  } else if (++late_polls_ > (alone_ ? kMostLatePollsAlone : kMostLatePolls)) {
    late_polls_ = 0;
    lost(Fault::conversion_missed, look_ticks, faults);
  }
}

}  // namespace opjoule
