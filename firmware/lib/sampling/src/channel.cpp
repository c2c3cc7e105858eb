#include "channel.h"

#include "tick_clock.h"

namespace opjoule {

using protocol::Flag;
using protocol::Mode;

namespace {
// START, address (and pointer, repeated START, address) at 400 kHz, plus interrupt latency. A first
// guess, corrected by measurement.
constexpr uint8_t kFirstLeadTicks[2] = {80, 210};
constexpr uint32_t kPauseAfterFailureTicks = 5000 * kTicksPerUs;
constexpr uint16_t kConversionsPerCheck = 256;
}  // namespace

void Channel::start(const SensorPlan& plan, uint8_t sensor, bool alone, uint32_t now_ticks) {
  plan_ = &plan;
  sensor_ = sensor;
  clock_.reset(plan_->sample_ticks);
  lead_ticks_[0] = kFirstLeadTicks[0];
  lead_ticks_[1] = kFirstLeadTicks[1];
  pointer_ = kNoRegister;
  flags_ = flag_bit(Flag::gap_before);
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

// Writes the setup registers one by one, then the one that starts conversions.
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
      // Polls again, after any other sensor that is due.
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

// The bus voltage is converted next, in place of the shunt voltage.
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

// The end is known to within the distance of two polls: enough for a voltage, which changes slowly.
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

// Schedules a poll so that it reads the flag at the moment the clock aims at.
void Channel::plan_poll() {
  step_ = Step::poll;
  transfer_ = &poll_;
  placed_ = true;
  placed_with_pointer_ = set_pointer();
  aimed_ticks_ = clock_.aim_ticks();
  start_ticks_ = aimed_ticks_ - lead_ticks_[placed_with_pointer_];
  if (alerts_) {
    // Needed only if the alert fails to come.
    placed_ = false;
    start_ticks_ += clock_.period_ticks() / 8;
  }
}

void Channel::plan_bus_poll(uint32_t look_ticks) {
  step_ = Step::poll_bus;
  transfer_ = &poll_;
  start_ticks_ = look_ticks - lead_ticks_[set_pointer()];
}

}  // namespace opjoule
