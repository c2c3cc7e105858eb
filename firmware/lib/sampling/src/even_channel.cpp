#include "even_channel.h"

#include "tick_clock.h"

namespace opjoule {

using protocol::Fault;
using protocol::Flag;

namespace {
// From a transfer's start to its look: START and address, and pointer and address before, at 400
// kHz with interrupt times.
constexpr uint8_t kLeadTicks[2] = {80, 190};
constexpr uint32_t kSoonTicks = 60 * kTicksPerUs;  // what an alarm may cost
constexpr uint8_t kCalibrations = 64;
constexpr uint32_t kPauseAfterFailureTicks = 5000 * kTicksPerUs;
// The first bus conversion ends that far from its own time after the write: the chip may need 40 us
// to start (SBOS448G, 7.5).
constexpr int16_t kFirstLowTicks = -24;
constexpr int16_t kFirstHighTicks = 96;
constexpr uint8_t kBlocksWithoutRow = 12;
constexpr uint8_t kBlocksPerProbe = 4;  // a power of two
constexpr int16_t kSafeTicks = 8;
constexpr uint16_t kBlocksPerCalibration = 2048;

uint8_t bit(Flag flag) { return static_cast<uint8_t>(flag); }
}  // namespace

void EvenChannel::start(const SensorPlan& plan, uint8_t sensor, uint32_t now_ticks) {
  plan_ = &plan;
  sensor_ = sensor;
  low_ticks_ = kFirstLowTicks;
  high_ticks_ = kFirstHighTicks;
  blocks_ = 0;
  pointer_ = kNoRegister;
  flags_ = bit(Flag::gap_before);
  start_delay_ticks_ = 0;
  bus_ = 0;
  row_open_ = false;
  bus_end_ticks_ = start_ticks_ = now_ticks;
  calibrate();
}

void EvenChannel::calibrate() {
  clock_.reset(plan_->calibration_ticks);
  calibrations_left_ = kCalibrations;
  plan_at_once(Step::write_calibration);
}

bool EvenChannel::advance(const BusResult& result, EvenQueue& queue) {
  done_ = step_;
  if (!result.ok) {
    pointer_ = kNoRegister;
    plan_at_once(calibrations_left_ != 0 ? Step::write_calibration : Step::write_bus_mode);
    start_ticks_ = result.end_ticks + kPauseAfterFailureTicks;
    return false;
  }
  pointer_ = transfer_.last_register();
  switch (step_) {
    case Step::write_calibration:
      clock_.restart(result.end_ticks);
      return plan_look(Step::poll, clock_.aim_ticks());
    case Step::poll:
      if (is_ready(result) && plan_->map->clear != kNoRegister) {
        return plan_at_once(Step::clear_ready);
      }
      return plan_at_once(calibrations_left_ != 0 ? Step::poll : Step::write_bus_mode);
    case Step::clear_ready:
      if (calibrations_left_ == 0) return plan_at_once(Step::write_bus_mode);
      return plan_look(Step::poll, clock_.aim_ticks());
    case Step::write_bus_mode:
      written_ticks_ = result.end_ticks;
      return plan_look(Step::poll_bus, written_ticks_ + bus_period_ticks_ +
                                           static_cast<uint32_t>(bus_look_ticks()));
    case Step::poll_bus:
      if (!is_ready(result)) return plan_at_once(Step::poll_bus);
      take_bus(result);
      // The first bus conversions only serve to find out when a conversion begins after its write.
      return plan_at_once(row_open_ ? Step::write_sample_mode : Step::write_bus_mode);
    case Step::write_sample_mode:
      return begin_row(result.end_ticks, queue);
    case Step::read_row:
      if (blocks_ < kBlocksPerCalibration) return plan_at_once(Step::write_bus_mode);
      calibrate();
      return true;
  }
  return false;
}

void EvenChannel::digest(const BusResult& result, EvenQueue& queue, FaultCounters& faults) {
  if (!result.ok) {
    faults.count(result.fault, sensor_, result.end_ticks);
    flags_ |= bit(Flag::missed_before);
    if (done_ == Step::read_row) {
      row_ended(queue, faults, result.end_ticks);
    } else if (row_open_) {
      queue.close();
      row_open_ = false;
    }
    return;
  }
  switch (done_) {
    case Step::write_bus_mode:
      if (blocks_ >= kBlocksWithoutRow && !row_open_) prepare_row(queue);
      return;
    case Step::poll:
      if (!is_ready(result)) return clock_.not_ready(result.look_ticks(0));
      clock_.ready(result.look_ticks(0));
      if (--calibrations_left_ == 0) calibrated();
      return;
    case Step::poll_bus:
      return bus_looked(result.look_ticks(0) - written_ticks_, is_ready(result));
    case Step::read_row:
      return row_ended(queue, faults, result.end_ticks);
    default:
      return;
  }
}

bool EvenChannel::is_ready(const BusResult& result) const {
  return result.value16() & plan_->map->ready_mask;
}

// The value of a poll that came at the very moment of the update may be neither the old one nor the
// new: it is taken only where the poll was later than the end can have been. Else the one before
// stays.
void EvenChannel::take_bus(const BusResult& result) {
  const uint32_t look_ticks = result.look_ticks(0);
  const int16_t after = static_cast<int16_t>(look_ticks - written_ticks_ - bus_period_ticks_);
  if (after < high_ticks_ + kSafeTicks) return;
  bus_ = static_cast<uint16_t>(result.value16() >> plan_->map->bus_shift);
  bus_end_ticks_ = written_ticks_ + bus_period_ticks_ + static_cast<uint32_t>(high_ticks_);
}

// While the bus voltage is converted, well before the row: at 84 us a conversion there is no time
// for this afterwards.
void EvenChannel::prepare_row(EvenQueue& queue) {
  const uint32_t period_ticks = paced_.period_q8 >> 8;
  queue.open({0, paced_.period_q8, 0, 0, sensor_, flags_});
  row_open_ = true;
  flags_ = bit(Flag::gap_before);
  paced_.count = static_cast<uint8_t>(plan_->bus_every);
  // Each conversion is looked at 5/16 into the next one: the times are known better than that, and
  // whatever holds a read up makes it later.
  const uint32_t after_ticks = period_ticks / 4 + period_ticks / 16;
  paced_.late_ticks = static_cast<uint16_t>(period_ticks - after_ticks - period_ticks / 8);
  row_first_end_ = static_cast<uint32_t>(start_delay_ticks_) + period_ticks;
  row_first_start_ = row_first_end_ + after_ticks - kLeadTicks[1];
}

// Shunt conversions run since the write at `written_ticks`. True: it is time for the first read.
bool EvenChannel::begin_row(uint32_t written_ticks, EvenQueue& queue) {
  queue.complete_opening(written_ticks + row_first_end_, bus_, bus_end_ticks_);
  start_ticks_ = written_ticks + row_first_start_;
  step_ = Step::read_row;
  transfer_.reads = 1;
  transfer_.registers[0] = plan_->map->shunt;
  transfer_.flags = kPaced;
  return row_first_start_ < kSoonTicks;
}

void EvenChannel::row_ended(EvenQueue& queue, FaultCounters& faults, uint32_t ticks) {
  row_open_ = false;
  if (!queue.close()) faults.count(Fault::transmit_full, sensor_, ticks);
  if (paced_.done == paced_.count) return;
  flags_ |= bit(Flag::missed_before);
  faults.count(Fault::conversion_missed, sensor_, ticks,
               static_cast<uint16_t>(paced_.count - paced_.done));
}

void EvenChannel::calibrated() {
  paced_.period_q8 = scaled(plan_->sample_ticks);
  bus_period_ticks_ = scaled(plan_->bus_ticks) >> 8;
  if (blocks_ >= kBlocksPerCalibration) blocks_ = kBlocksWithoutRow;
}

// The true time of what nominally takes `ticks`, in 1/256 tick.
uint32_t EvenChannel::scaled(uint32_t ticks) const {
  const uint32_t calibration_ticks = plan_->calibration_ticks;
  if (ticks >= calibration_ticks) return clock_.period_q8() * (ticks / calibration_ticks);
  return clock_.period_q8() * ticks / calibration_ticks;
}

// A poll of the bus conversion's end narrows what is known of it. An answer that cannot be (the
// stamp came late, or the oscillator has moved) shifts it a little.
void EvenChannel::bus_looked(uint32_t after_write_ticks, bool ready) {
  const int16_t after = static_cast<int16_t>(after_write_ticks - bus_period_ticks_);
  if (!ready) {
    if (after >= high_ticks_) {
      shift_bracket(+1);
    } else if (after > low_ticks_) {
      low_ticks_ = after;
    }
    return;
  }
  if (after <= low_ticks_) {
    shift_bracket(-1);
  } else if (after < high_ticks_) {
    high_ticks_ = after;
  }
  ++blocks_;
  start_delay_ticks_ = static_cast<int16_t>((low_ticks_ + high_ticks_) >> 1);
  // What may have happened until the next look.
  --low_ticks_;
  ++high_ticks_;
}

// Where to look at the bus conversion's flag, after the conversion's own time: mostly just after
// its end, for its value; now and then, and at first, in the middle of where the end may be.
int16_t EvenChannel::bus_look_ticks() const {
  const bool probe = blocks_ < kBlocksWithoutRow - 2 || (blocks_ & (kBlocksPerProbe - 1)) == 0;
  if (probe) return static_cast<int16_t>((low_ticks_ + high_ticks_) >> 1);
  return static_cast<int16_t>(high_ticks_ + 2 * kSafeTicks);
}

void EvenChannel::shift_bracket(int8_t ticks) {
  low_ticks_ = static_cast<int16_t>(low_ticks_ + ticks);
  high_ticks_ = static_cast<int16_t>(high_ticks_ + ticks);
}

bool EvenChannel::plan_at_once(Step step) {
  step_ = step;
  const RegisterMap& map = *plan_->map;
  switch (step) {
    case Step::write_calibration:
      transfer_ = write_register(plan_->address, map.configuration, plan_->calibration_mode);
      break;
    case Step::write_bus_mode:
      transfer_ = write_register(plan_->address, map.configuration, plan_->bus_mode);
      break;
    case Step::write_sample_mode:
      transfer_ = write_register(plan_->address, map.configuration, plan_->sample_mode);
      break;
    case Step::poll:
    case Step::poll_bus:
      transfer_ = read_register(plan_->address, map.poll);
      break;
    case Step::clear_ready:
      transfer_ = read_register(plan_->address, map.clear);
      break;
    case Step::read_row:
      break;
  }
  return true;
}

bool EvenChannel::plan_look(Step step, uint32_t look_ticks) {
  plan_at_once(step);
  start_ticks_ = look_ticks - kLeadTicks[set_pointer()];
  return false;
}

}  // namespace opjoule
