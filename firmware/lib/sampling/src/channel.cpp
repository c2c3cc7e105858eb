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
// Within this time of an expected end it may have come.
constexpr int32_t kModeMarginTicks = 30;
// From a conversion's end to the write of the next mode: later than any poll that finds the end, so
// that the time is always the same, and before the shortest conversion that follows has ended.
constexpr uint32_t kWriteAheadTicks = 255 * kTicksPerUs;
// Conversions before the next bus reading while the delay of a new mode is not known yet.
constexpr uint8_t kShortRow = 32;
}  // namespace

void Channel::start(const SensorPlan& plan, uint8_t sensor, bool alone, uint32_t now_ticks) {
  plan_ = &plan;
  sensor_ = sensor;
  lead_ticks_[0] = kFirstLeadTicks[0];
  lead_ticks_[1] = kFirstLeadTicks[1];
  pointer_ = kNoRegister;
  flags_ = flag_bit(Flag::gap_before);
  overdue_ = placed_ = alerted_ = alerts_ = sample_waits_ = bus_clipped_ = false;
  late_polls_ = 0;
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
  clock_.reset(plan_->sample_ticks);
  set_up();
  start_ticks_ = now_ticks;
}

// The first rows, from which the delay of a new mode is learned, are short.
void Channel::shorten_row() {
  until_bus_ = plan_->bus_every < kShortRow ? plan_->bus_every : kShortRow;
}

void Channel::set_up() {
  clock_.forget_delay();
  setups_left_ = plan_->setups;
  passes_ = passes_bus_ = true;
  finishes_ = found_out_ = ahead_ = aborts_ = false;
  shorten_row();
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
    plan_write(Step::write_bus_mode, bus_mode());
  }
}

bool Channel::advance(const BusResult& result) {
  done_ = step_;
  pointer_ = transfer_->last_register();
  if (step_ == Step::poll && result.ok) {
    if (is_ready(result)) return after_ready(result);
    if (ahead_ && is_late(result)) {
      finishes_ = ahead_ = false;
      plan_bus_poll(result.end_ticks);
      return false;
    }
    if (overdue_) {
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

// A conversion has ended. If a mode is to be written, that comes before its reading.
bool Channel::after_ready(const BusResult& result) {
  if (passes_) return pass(Step::pass_flag);
  if (!finishes_ && clock_.too_early(result.look_ticks(0))) {
    finishes_ = true;
    return pass(Step::pass_flag);
  }
  if (ahead_) {
    // At a fixed time after a conversion's end, since the next row may begin so much later.
    plan_write_ahead();
    start_ticks_ =
        clock_.end_ticks() + clock_.period_ticks() + clock_.by_chip_ticks(kWriteAheadTicks);
    return false;
  }
  if (bus_due()) {
    plan_write(Step::write_bus_mode, bus_mode());
    sample_waits_ = true;
  } else {
    step_ = Step::read_sample;
    transfer_ = &read_sample_;
  }
  return true;
}

// A chip whose flag is cleared by the poll itself needs no further read, only the next poll.
bool Channel::pass(Step step) {
  (step == Step::pass_flag ? passes_ : passes_bus_) = false;
  plan_read(step, plan_->map->clear == kNoRegister ? plan_->map->configuration : plan_->map->clear);
  return true;
}

// No chip that finishes its conversions lets one end so late.
bool Channel::is_late(const BusResult& result) const {
  const uint32_t end_ticks = clock_.end_ticks() + clock_.period_ticks();
  return ticks_between(end_ticks, result.look_ticks(0)) > kModeMarginTicks;
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
      clock_.begin_row(result.end_ticks - plan_->sample_ticks);
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
      return after_return(result);
    case Step::write_ahead:
      bus_written_ticks_ = result.end_ticks;
      plan_read(Step::read_sample, plan_->map->shunt);
      return true;
    case Step::pass_bus_flag:
      plan_bus_poll(result.end_ticks);
      return false;
    case Step::read_bus:
      return after_bus_reading(result);
    case Step::check_configuration:
      if (overdue_ || result.value16() != plan_->sample_mode) {
        overdue_ = false;
        set_up();
        return true;
      }
      plan_poll();
      return false;
    case Step::poll:
    case Step::pass_flag:
      plan_poll();
      return false;
  }
  return false;
}

// The mode of the samples is written again; the bus voltage is read next.
bool Channel::after_return(const BusResult& result) {
  if (passes_) {
    clock_.begin_row(result.end_ticks - plan_->sample_ticks);
  } else {
    clock_.restart(result.end_ticks);
  }
  plan_read(Step::read_bus, plan_->map->bus);
  return true;
}

// A bus voltage has been read. If the mode of the samples was written ahead of its end, their row
// begins now.
bool Channel::after_bus_reading(const BusResult& result) {
  // The bus conversion did not end before aimed_ticks_, nor the row's first one a period later.
  cleared_late_ = other_.reads > 1 && ticks_between(aimed_ticks_, result.look_ticks(1)) >
                                          static_cast<int32_t>(clock_.period_ticks());
  if (!passes_) aborts_ = !finishes_;
  if (!passes_ && ahead_) {
    ahead_ = false;
    // What was found out late took longer than the next bus reading will.
    if (found_out_) {
      clock_.begin_row(clock_.end_ticks());
    } else {
      clock_.restart(clock_.end_ticks());
    }
    clock_.cleared(plan_->map->clear == kNoRegister ? bus_end_ticks_ : result.look_ticks(1));
    found_out_ = false;
  }
  plan_poll();
  return false;
}

// Bus conversions are long ones until a bus reading has shown whether the chip finishes its
// conversions, and on a chip that does: of short ones several would come before the next mode.
uint16_t Channel::bus_mode() const { return aborts_ ? plan_->bus_mode : plan_->first_bus_mode; }

uint32_t Channel::bus_ticks() const { return aborts_ ? plan_->bus_ticks : plan_->first_bus_ticks; }

// The bus voltage is converted next, in place of the shunt voltage.
bool Channel::bus_due() const {
  return plan_->mode == Mode::shunts && plan_->bus_every != 0 && until_bus_ <= 1;
}

// A little before the earliest end of a conversion that begins with the bus mode.
uint32_t Channel::first_bus_look_ticks() const {
  return bus_written_ticks_ + clock_.by_chip_ticks(bus_ticks()) - 2 * kModeMarginTicks;
}

bool Channel::after_sample() {
  if (ahead_) {
    plan_bus_poll(clock_.end_ticks() + clock_.by_chip_ticks(bus_ticks()));
    return false;
  }
  if (bus_due()) {
    until_bus_ = plan_->bus_every;
    ahead_ = finishes_;
    if (ahead_) {
      plan_poll();
    } else if (aborts_) {
      plan_bus_poll(first_bus_look_ticks());
    } else {
      // If the chip finishes the conversion under way, that is found out as soon as it has ended.
      plan_bus_poll(clock_.end_ticks() + clock_.period_ticks() + kModeMarginTicks);
    }
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
    if (passes_bus_) return pass(Step::pass_bus_flag);
    if (!ahead_ && !passes_ &&
        ticks_between(look_ticks, first_bus_look_ticks()) > -kModeMarginTicks) {
      // Too early for the bus voltage: the last conversion of the current has been finished.
      finishes_ = found_out_ = ahead_ = true;
      shorten_row();
      plan_write_ahead();
      // Whatever the delay, the bus conversion has begun by then: a mode written before would
      // replace its own.
      start_ticks_ = bus_written_ticks_ + clock_.period_ticks();
      return false;
    }
    bus_end_ticks_ = look_ticks;
    if (ahead_) {
      plan_bus_read();
      return true;
    }
    // Back to the current first; the bus register keeps its value, and the write clears the flag.
    plan_write(Step::return_to_sample_mode, plan_->sample_mode);
    return true;
  }
  const uint32_t longest_ticks = 4 * bus_ticks() + 2 * plan_->sample_ticks;
  if (ticks_between(bus_written_ticks_ + longest_ticks, look_ticks) > 0) {
    passes_ = passes_bus_ = true;
    ahead_ = false;
    plan_write(Step::write_bus_mode, bus_mode());
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

void Channel::plan_write_ahead() {
  plan_write(Step::write_ahead, plan_->sample_mode);
  sample_waits_ = true;
}

void Channel::plan_read(Step step, uint8_t reg) {
  step_ = step;
  other_ = read_register(plan_->address, reg);
  if (plan_->map->wide && (reg == plan_->map->bus || reg == plan_->map->shunt)) other_.flags = 1;
  transfer_ = &other_;
}

// The bus voltage, and the flag is cleared: no mode is written that would do it.
void Channel::plan_bus_read() {
  plan_read(Step::read_bus, plan_->map->bus);
  if (plan_->map->clear != kNoRegister) other_.registers[other_.reads++] = plan_->map->clear;
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
  aimed_ticks_ = look_ticks;
  start_ticks_ = look_ticks - lead_ticks_[set_pointer()];
}

}  // namespace opjoule
