#include "channel.h"

#include "tick_clock.h"

namespace opjoule {

using protocol::Fault;
using protocol::Flag;
using protocol::Mode;

namespace {
// START, address (and pointer, repeated START, address) at 400 kHz, and interrupt times; corrected
// by what is seen.
constexpr uint8_t kFirstLeadTicks[2] = {80, 210};
constexpr int32_t kLeadTrustTicks = 60;  // a poll later than this waited for the bus
constexpr uint32_t kPauseAfterFailureTicks = 5000 * kTicksPerUs;
constexpr int32_t kMarginTicks = 8;
// Alone on the bus, polls that come late still find each conversion if the bus is the faster of the
// two; then one of them comes too early before long. Beside other sensors nothing says so.
constexpr uint8_t kMostLatePollsAlone = 250;
constexpr uint8_t kMostLatePolls = 8;
constexpr uint16_t kConversionsPerCheck = 256;

uint8_t bit(Flag flag) { return static_cast<uint8_t>(flag); }
}  // namespace

void Channel::start(const SensorPlan& plan, uint8_t sensor, bool alone, uint32_t now_ticks) {
  plan_ = &plan;
  sensor_ = sensor;
  clock_.reset(plan_->sample_ticks);
  lead_ticks_[0] = kFirstLeadTicks[0];
  lead_ticks_[1] = kFirstLeadTicks[1];
  pointer_ = kNoRegister;
  flags_ = bit(Flag::gap_before);
  overdue_ = placed_ = alerted_ = alerts_ = sample_waits_ = bus_clipped_ = false;
  late_polls_ = 0;
  until_bus_ = plan_->bus_every;
  until_check_ = kConversionsPerCheck;
  alone_ = alone;
  poll_ = read_register(plan_->address, plan_->map->poll);
  read_sample_ = read_register(plan_->address, plan_->map->shunt);
  if (plan_->map->wide) read_sample_.flags = 1;
  if (plan_->map->clear != kNoRegister) {
    read_sample_.registers[read_sample_.reads++] = plan_->map->clear;
  }
  if (plan_->mode == Mode::pairs) {
    if (plan_->map->wide) read_sample_.flags |= static_cast<uint8_t>(1 << read_sample_.reads);
    read_sample_.registers[read_sample_.reads++] = plan_->map->bus;
  }
  set_up();
  start_ticks_ = now_ticks;
}

void Channel::set_up() {
  setups_left_ = plan_->setups;
  next_setup();
}

// The setup registers, then what starts the conversions.
void Channel::next_setup() {
  if (setups_left_ != 0) {
    const Setup& setup = plan_->setup[--setups_left_];
    step_ = Step::write_setup;
    other_ = write_register(plan_->address, setup.reg, setup.value);
    transfer_ = &other_;
  } else if (plan_->mode == Mode::pairs) {
    plan_write(Step::write_sample_mode, plan_->sample_mode);
  } else {
    plan_write(Step::write_bus_mode, plan_->bus_mode);
  }
}

bool Channel::advance(const BusResult& result) {
  done_ = step_;
  pointer_ = transfer_->last_register();
  if (step_ == Step::poll && result.ok) {
    if (is_ready(result)) {
      if (bus_due()) {
        plan_write(Step::write_bus_mode, plan_->bus_mode);
        sample_waits_ = true;
      } else {
        step_ = Step::read_sample;
        transfer_ = &read_sample_;
      }
    } else if (overdue_) {
      plan_read(Step::check_configuration, plan_->map->configuration);
    } else if (!alone_) {
      // Again, after any other sensor that is due.
      start_ticks_ = result.end_ticks;
      return false;
    }
    return true;
  }
  return advance_rarely(result);
}

bool Channel::advance_rarely(const BusResult& result) {
  if (!result.ok) {
    pointer_ = kNoRegister;
    sample_waits_ = false;
    set_up();
    start_ticks_ = result.end_ticks + kPauseAfterFailureTicks;
    return false;
  }
  switch (step_) {
    case Step::write_setup:
      next_setup();
      return true;
    case Step::write_sample_mode:
      clock_.restart(result.end_ticks);
      plan_poll();
      return false;
    case Step::read_sample:
      return after_sample();
    case Step::write_bus_mode:
      bus_written_ticks_ = result.end_ticks;
      if (sample_waits_) {
        plan_read(Step::read_sample, plan_->map->shunt);
        return true;
      }
      plan_bus_poll(first_bus_look_ticks());
      return false;
    case Step::poll_bus:
      return after_bus_poll(result);
    case Step::return_to_sample_mode:
      clock_.restart(result.end_ticks);
      plan_read(Step::read_bus, plan_->map->bus);
      return true;
    case Step::check_configuration:
      if (overdue_ || result.value16() != plan_->sample_mode) {
        overdue_ = false;
        set_up();
        return true;
      }
      plan_poll();
      return false;
    case Step::poll:
    case Step::read_bus:
      plan_poll();
      return false;
  }
  return false;
}

// The next conversion's place is the bus voltage's.
bool Channel::bus_due() const {
  return plan_->mode == Mode::shunts && plan_->bus_every != 0 && until_bus_ <= 1;
}

uint32_t Channel::first_bus_look_ticks() const {
  return bus_written_ticks_ + plan_->bus_ticks - plan_->bus_ticks / 8;
}

bool Channel::after_sample() {
  if (bus_due()) {
    until_bus_ = plan_->bus_every;
    plan_bus_poll(first_bus_look_ticks());
    return false;
  }
  --until_bus_;
  if (plan_->mode == Mode::pairs && --until_check_ == 0) {
    until_check_ = kConversionsPerCheck;
    plan_read(Step::check_configuration, plan_->map->configuration);
    return true;
  }
  plan_poll();
  return false;
}

// The end is known to within a poll distance, which is enough for a voltage that moves slowly.
bool Channel::after_bus_poll(const BusResult& result) {
  const uint32_t look_ticks = result.look_ticks(0);
  if (is_ready(result)) {
    bus_end_ticks_ = look_ticks;
    // Back to the current first; the bus register keeps its value, and the write clears the flag.
    plan_write(Step::return_to_sample_mode, plan_->sample_mode);
    return true;
  }
  if (ticks_between(bus_written_ticks_ + 2 * plan_->bus_ticks, look_ticks) > 0) {
    plan_write(Step::write_bus_mode, plan_->bus_mode);
    return true;
  }
  plan_bus_poll(look_ticks);
  return false;
}

bool Channel::alert(uint32_t ticks) {
  if (step_ != Step::poll || alerted_) return false;
  alerted_ = true;
  alert_ticks_ = ticks;
  return true;
}

bool Channel::is_ready(const BusResult& result) const {
  return result.value16() & plan_->map->ready_mask;
}

void Channel::digest(const BusResult& result, SampleQueue& queue, FaultCounters& faults) {
  if (!result.ok) return lost(result.fault, result.end_ticks, faults);
  switch (done_) {
    case Step::poll:
      return digest_poll(result, faults);
    case Step::read_sample:
      return digest_sample(result, queue, faults);
    case Step::read_bus:
      return digest_bus(result, queue);
    case Step::check_configuration:
      return digest_configuration(result, faults);
    default:
      return;
  }
}

// The samples until the next bus reading are multiplied by this one.
void Channel::digest_bus(const BusResult& result, SampleQueue& queue) {
  const uint32_t code = bus_code(result, 0);
  bus_clipped_ = code >= plan_->bus_full_scale;
  queue.push({bus_end_ticks_, 0, code, kBusOnly, sensor_});
  flags_ |= bit(Flag::gap_before);
}

void Channel::digest_poll(const BusResult& result, FaultCounters& faults) {
  const uint32_t look_ticks = result.look_ticks(0);
  if (placed_) first_poll(look_ticks, faults);
  placed_ = false;
  if (!is_ready(result)) {
    late_polls_ = 0;
    clock_.not_ready(look_ticks);
    overdue_ = clock_.overdue(look_ticks);
    return;
  }
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
    // The bus register comes last; before it, where there is one, the register that clears the
    // flag.
    uint8_t from = plan_->map->wide ? 3 : 2;
    if (plan_->map->clear != kNoRegister) from = static_cast<uint8_t>(from + 2);
    sample.bus = bus_code(result, from);
    bus_clipped_ = sample.bus >= plan_->bus_full_scale ||
                   (result.value16(from) & plan_->map->overflow_mask) != 0;
  }
  if (bus_clipped_ || sample.shunt >= plan_->shunt_full_scale ||
      sample.shunt <= -plan_->shunt_full_scale) {
    sample.flags |= bit(Flag::overflow);
  }
  if (sample.flags & bit(Flag::overflow)) {
    faults.count(Fault::shunt_overflow, sensor_, result.end_ticks);
  }
  if (!queue.push(sample)) faults.count(Fault::transmit_full, sensor_, result.end_ticks);
}

int32_t Channel::shunt_code(const BusResult& result) const {
  if (!plan_->map->wide) return static_cast<int16_t>(result.value16());
  const int32_t code = static_cast<int32_t>(result.value24(0) << 8) >> 8;
  return code >> plan_->map->shunt_shift;
}

uint32_t Channel::bus_code(const BusResult& result, uint8_t from) const {
  if (plan_->map->wide) return result.value24(from) >> plan_->map->bus_shift;
  return static_cast<uint16_t>(result.value16(from) >> plan_->map->bus_shift);
}

// A sensor whose supply has failed converts by its default configuration.
void Channel::digest_configuration(const BusResult& result, FaultCounters& faults) {
  if (step_ == Step::poll) return;
  const bool changed = result.value16() != plan_->sample_mode;
  lost(changed ? Fault::sensor_reset : Fault::conversion_missed, result.end_ticks, faults);
}

// The shunt value was read before the next one came, and the flag cleared before it was set again.
// By the chip's own pace, which the clock knows.
bool Channel::in_time(const BusResult& result) const {
  const uint32_t end_ticks = clock_.end_ticks();
  const uint32_t period_ticks = clock_.period_ticks();
  if (sample_waits_) {
    // Read in bus mode, where no shunt conversion overwrites it: that mode had to come in time.
    return ticks_between(end_ticks, bus_written_ticks_) <
           static_cast<int32_t>(period_ticks) - kMarginTicks;
  }
  const uint32_t shunt_valid_ticks = (period_ticks * plan_->shunt_share_q8) >> 8;
  const uint8_t clear = plan_->map->clear == kNoRegister ? 0 : 1;
  const int32_t shunt_age = ticks_between(end_ticks, result.look_ticks(0));
  const int32_t clear_age = ticks_between(end_ticks, result.look_ticks(clear));
  return shunt_age < static_cast<int32_t>(shunt_valid_ticks) - kMarginTicks &&
         clear_age < static_cast<int32_t>(period_ticks) - kMarginTicks;
}

void Channel::lost(Fault fault, uint32_t ticks, FaultCounters& faults, uint8_t times) {
  faults.count(fault, sensor_, ticks, times);
  flags_ |= bit(Flag::missed_before);
}

void Channel::plan_write(Step step, uint16_t mode) {
  step_ = step;
  other_ = write_register(plan_->address, plan_->map->configuration, mode);
  transfer_ = &other_;
}

void Channel::plan_read(Step step, uint8_t reg) {
  step_ = step;
  other_ = read_register(plan_->address, reg);
  if (plan_->map->wide && (reg == plan_->map->bus || reg == plan_->map->shunt)) other_.flags = 1;
  transfer_ = &other_;
}

// A poll that looks at the moment the clock aims at.
void Channel::plan_poll() {
  step_ = Step::poll;
  transfer_ = &poll_;
  placed_ = true;
  placed_with_pointer_ = set_pointer();
  aimed_ticks_ = clock_.aim_ticks();
  start_ticks_ = aimed_ticks_ - lead_ticks_[placed_with_pointer_];
  if (alerts_) {
    // Only if the alert stays away.
    placed_ = false;
    start_ticks_ += clock_.period_ticks() / 8;
  }
}

void Channel::plan_bus_poll(uint32_t look_ticks) {
  step_ = Step::poll_bus;
  transfer_ = &poll_;
  start_ticks_ = look_ticks - lead_ticks_[set_pointer()];
}

// A poll that looked late or early although the bus was free: start the next one accordingly. One
// that comes too late over and over cannot see where conversions end, nor whether one was missed.
void Channel::first_poll(uint32_t look_ticks, FaultCounters& faults) {
  const int32_t late_ticks = ticks_between(aimed_ticks_, look_ticks);
  uint8_t& lead = lead_ticks_[placed_with_pointer_];
  if (late_ticks > 0 && late_ticks < kLeadTrustTicks) ++lead;
  if (late_ticks < 0 && late_ticks > -kLeadTrustTicks) --lead;
  // Where sensors share the bus, one may wait for the other's reads.
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
