#include "conversion_clock.h"

#include "tick_clock.h"

namespace opjoule {

namespace {
// A poll is stamped in an interrupt, which another interrupt may have delayed: the flag may have
// been read this much before the stamp.
constexpr int32_t kStampDelay_q8 = 6 << 8;
// The same for an alert, whose interrupt has the highest priority.
constexpr int32_t kAlertDelay_q8 = 20 << 8;
constexpr int32_t kSettledHalf_q8 = 16 << 8;
constexpr uint8_t kMostReadyProbes = 12;
constexpr uint8_t kConversionsPerProbe = 4;  // a power of two
constexpr int32_t kLeastHalf_q8 = 2 << 8;
// How much the period may change within a few hundred conversions.
constexpr uint32_t kLeastWidening_q8 = 16;
// From the time at which a row was expected to begin to that at which it does, once the delay has
// been measured.
constexpr int32_t kStartHalf_q8 = 24L << 8;
constexpr int32_t kMostStartHalf_q8 = 96L << 8;
constexpr uint32_t kEarlyTicks = 24;
// An answer that contradicts the interval by less than this moves it; by more, it is given up.
constexpr int32_t kSlack_q8 = 32L << 8;
// How far an end without a poll before it is sought at a time.
constexpr int32_t kSeekHalf_q8 = 64L << 8;
// In a wider interval polls follow each other without pause, so that none of its ends is missed.
constexpr int32_t kWideHalf_q8 = 150L << 8;
// The data sheet's longest conversion time is 10 % above the typical one; an eighth leaves room.
constexpr uint8_t kToleranceShift = 3;
// How much the period may change during an outage: a thousandth.
constexpr uint8_t kDriftShift = 10;
constexpr uint16_t kLongestRow = 256;
}  // namespace

void ConversionClock::reset(uint32_t nominal_period_ticks) {
  nominal_q8_ = nominal_period_ticks << 8;
  set_period_q8(nominal_q8_);
  widening_q8_ = period_q8_ >> kToleranceShift;
  followed_ = false;
  forget_delay();
}

// A chip that has just been without its supply may be colder, and its oscillator a little off.
void ConversionClock::forget_delay() {
  const uint32_t drift_q8 = period_q8_ >> kDriftShift;
  if (widening_q8_ < drift_q8) widening_q8_ = drift_q8;
  delay_known_ = false;
  row_ = 0;
}

void ConversionClock::restart(uint32_t start_ticks) {
  begin_row(start_ticks);
  learns_ = true;
  if (delay_known_) {
    middle_ = start_ticks + period_ticks() + delay_ticks_;
    half_q8_ = delay_half_q8_;
    // The first poll should come too early: an end a whole period before would not be noticed else.
    aim_ = middle_ - static_cast<uint32_t>(half_q8_ >> 8) - kEarlyTicks;
  }
}

// Nothing is known but that the next end is a period away at least, less the tolerance of a chip
// that has not been followed yet.
void ConversionClock::begin_row(uint32_t start_ticks) {
  const uint32_t period = period_ticks();
  const uint32_t early = period >> (followed_ ? kToleranceShift + 1 : kToleranceShift);
  aim_ = start_ticks + period - early;
  half_q8_ = static_cast<int32_t>((2 * period + early) << 7);  // a delay of up to two periods
  middle_ = aim_ + static_cast<uint32_t>(half_q8_ >> 8);
  middle_part_q8_ = 0;
  start_ = start_ticks;
  row_ = 0;
  ready_probes_ = 0;
  since_anchor_ = kLongestRow;  // the period is measured from the row's first end
  astray_ = learns_ = false;
}

// How much later than a period after its start the row's first conversion ended: the delay with
// which the chip starts. It is taken as soon as the row's ends and its period are known as well as
// it is known itself.
void ConversionClock::learn_delay() {
  int32_t half_q8 = half_q8_ + static_cast<int32_t>(row_ * widening_q8_);
  if (half_q8 < kStartHalf_q8) half_q8 = kStartHalf_q8;
  if (half_q8 > (delay_known_ ? delay_half_q8_ : kMostStartHalf_q8)) return;
  delay_half_q8_ = half_q8;
  delay_ticks_ = end_ - start_ - row_ * (period_q8_ >> 8) - ((row_ * (period_q8_ & 0xFF)) >> 8);
  delay_known_ = true;
  if (half_q8 == kStartHalf_q8) learns_ = false;
}

void ConversionClock::cleared(uint32_t ticks) {
  const int32_t cleared_q8 = from_middle_q8(ticks) - kStampDelay_q8;
  if (cleared_q8 > -half_q8_ && cleared_q8 < half_q8_) narrow(cleared_q8, half_q8_);
}

void ConversionClock::not_ready(uint32_t look_ticks) {
  ready_probes_ = 0;
  last_look_ = look_ticks;
  const int32_t look_q8 = from_middle_q8(look_ticks) - kStampDelay_q8;
  if (look_q8 >= half_q8_ + kSlack_q8) {
    astray_ = true;
  } else if (look_q8 >= half_q8_) {
    surprise();
    half_q8_ = kLeastHalf_q8 + static_cast<int32_t>(widening_q8_);
    move_middle_q8(look_q8 + half_q8_);
  } else if (look_q8 > -half_q8_) {
    narrow(look_q8, half_q8_);
  }
  aim_ = astray_ || half_q8_ > kWideHalf_q8 ? look_ticks : middle_;
}

uint8_t ConversionClock::ready(uint32_t look_ticks) {
  int32_t high_q8 = from_middle_q8(look_ticks);
  if (astray_) return found(high_q8);
  const uint8_t missed = skip_missed(&high_q8, static_cast<int32_t>(period_q8_));
  if (high_q8 > -half_q8_ - kSlack_q8 && high_q8 <= -half_q8_) {
    surprise();
    half_q8_ = kLeastHalf_q8 + static_cast<int32_t>(widening_q8_);
    move_middle_q8(high_q8 - half_q8_);
  } else if (high_q8 <= -half_q8_) {
    // Earlier than it can be: its end is sought in steps, until a poll comes before it.
    surprise();
    move_middle_q8(high_q8 - kSeekHalf_q8);
    half_q8_ = kSeekHalf_q8;
  } else if (high_q8 < half_q8_) {
    narrow(-half_q8_, high_q8);
    doubt();
  }
  complete();
  return missed;
}

// The flag came later than it could, between the last poll and one `high_q8` from the middle:
// either after one or more conversions whose flags were never seen, or the estimate was wrong.
uint8_t ConversionClock::found(int32_t high_q8) {
  int32_t low_q8 = from_middle_q8(last_look_) - kStampDelay_q8;
  uint8_t missed = 0;
  while (row_ != 0 && low_q8 + high_q8 > static_cast<int32_t>(period_q8_) && missed < 255) {
    low_q8 -= static_cast<int32_t>(period_q8_);
    high_q8 -= static_cast<int32_t>(period_q8_);
    skip_one();
    ++missed;
  }
  if (low_q8 < half_q8_ && high_q8 > -half_q8_) {
    if (low_q8 < -half_q8_) low_q8 = -half_q8_;
    if (high_q8 > half_q8_) high_q8 = half_q8_;
  } else {
    surprise();
  }
  narrow(low_q8, high_q8);
  complete();
  return missed;
}

// A poll inside the interval should find the flag set half of the time. If it always does,
// conversions end earlier than estimated.
void ConversionClock::doubt() {
  if (++ready_probes_ < kMostReadyProbes) return;
  ready_probes_ = kMostReadyProbes - 2;  // the next two decide
  surprise();
  half_q8_ = 2 * (kLeastHalf_q8 + static_cast<int32_t>(widening_q8_));
  move_middle_q8(-half_q8_);
}

uint8_t ConversionClock::alerted(uint32_t alert_ticks) {
  int32_t high_q8 = from_middle_q8(alert_ticks);
  const uint8_t missed = skip_missed(&high_q8, static_cast<int32_t>(period_q8_ / 2));
  int32_t low_q8 = high_q8 - kAlertDelay_q8;
  if (high_q8 > -half_q8_ && low_q8 < half_q8_) {
    if (low_q8 < -half_q8_) low_q8 = -half_q8_;
    if (high_q8 > half_q8_) high_q8 = half_q8_;
  } else {
    surprise();
  }
  narrow(low_q8, high_q8);
  complete();
  return missed;
}

// Moves on by whole conversions until `from_middle_q8` is less than `most_q8` after the one that is
// waited for.
uint8_t ConversionClock::skip_missed(int32_t* from_middle_q8, int32_t most_q8) {
  uint8_t missed = 0;
  while (row_ != 0 && *from_middle_q8 > most_q8 && missed < 255) {
    skip_one();
    *from_middle_q8 -= static_cast<int32_t>(period_q8_);
    ++missed;
  }
  return missed;
}

void ConversionClock::skip_one() {
  move_middle_q8(static_cast<int32_t>(period_q8_));
  ++since_anchor_;
  if (row_ < kLongestRow) ++row_;
}

// The conversion has ended in the middle of its interval; from now on the next one is waited for.
void ConversionClock::complete() {
  end_ = middle_ + (middle_part_q8_ >> 7);
  ++since_anchor_;
  if (row_ < kLongestRow) ++row_;
  measure_period();
  if (learns_ && row_ > 1) learn_delay();
  followed_ = true;
  astray_ = false;
  move_middle_q8(static_cast<int32_t>(period_q8_));
  half_q8_ += static_cast<int32_t>(widening_q8_);
  aim_ = middle_;
  if (half_q8_ > kWideHalf_q8) {
    aim_ -= static_cast<uint32_t>(half_q8_ >> 8);
    return;
  }
  // Once the end is well known, most polls are aimed just after it, so that no second one is
  // needed.
  const bool probe = (since_anchor_ & (kConversionsPerProbe - 1)) == 0;
  if (!probe && half_q8_ < kSettledHalf_q8) {
    aim_ += static_cast<uint32_t>((half_q8_ + kStampDelay_q8) >> 8) + 1;
  }
}

bool ConversionClock::overdue(uint32_t look_ticks) const {
  return ticks_between(middle_, look_ticks) > static_cast<int32_t>(period_ticks() / 2 + 1000);
}

bool ConversionClock::too_early(uint32_t look_ticks) const {
  if (row_ != 0 || !followed_) return false;
  return ticks_between(start_, look_ticks) <
         static_cast<int32_t>(period_ticks() - (period_ticks() >> 5));
}

// Off by an eighth at most: 32 bits hold the product of ticks and a share of 1/1024.
uint32_t ConversionClock::by_chip_ticks(uint32_t nominal_ticks) const {
  return nominal_ticks +
         static_cast<uint32_t>(static_cast<int32_t>(nominal_ticks) * slow_q10_ >> 10);
}

int32_t ConversionClock::from_middle_q8(uint32_t look_ticks) const {
  int32_t distance = ticks_between(middle_, look_ticks);
  constexpr int32_t kFar = 1L << 22;  // 2 s, beyond any conversion
  if (distance > kFar) distance = kFar;
  if (distance < -kFar) distance = -kFar;
  return distance * 256 - middle_part_q8_;
}

void ConversionClock::move_middle_q8(int32_t by_q8) {
  const int32_t sum_q8 = by_q8 + middle_part_q8_;
  middle_ += static_cast<uint32_t>(sum_q8 >> 8);
  middle_part_q8_ = static_cast<uint8_t>(sum_q8);
}

// The end lies between these two, both measured from the middle.
void ConversionClock::narrow(int32_t low_q8, int32_t high_q8) {
  // Shifts: a signed division by 2 is a call of 600 cycles under avr-gcc's -Os.
  move_middle_q8((low_q8 + high_q8) >> 1);
  half_q8_ = (high_q8 - low_q8) >> 1;
  if (half_q8_ < kLeastHalf_q8) half_q8_ = kLeastHalf_q8;
}

// An impossible answer. At the start of a row the delay was another; later the period is less well
// known than assumed. The interval counts no longer, and the period is measured anew. Nothing is
// learned from the row: an end may have been missed, so that its conversions are not counted right.
void ConversionClock::surprise() {
  since_anchor_ = kLongestRow;
  learns_ = false;
  if (row_ <= 1) {
    delay_known_ = false;
    return;
  }
  widening_q8_ *= 2;
  const uint32_t most_q8 = nominal_q8_ >> kToleranceShift;
  if (widening_q8_ > most_q8) widening_q8_ = most_q8;
}

// Measures the period over 1, 2, 4, ... conversions, so that the division is a shift; starts over
// when the longest run is full.
void ConversionClock::measure_period() {
  if (since_anchor_ <= kLongestRow && (since_anchor_ & (since_anchor_ - 1)) == 0) {
    uint8_t shift = 0;
    while ((1u << shift) < since_anchor_) ++shift;
    const uint32_t uncertainty_q8 = static_cast<uint32_t>(half_q8_ + anchor_half_q8_) >> shift;
    if (uncertainty_q8 <= widening_q8_ || !followed_) {
      // Only the low 32 bits of the distance in 1/256 tick fit; the period's own are enough, as the
      // distance is within half a tick of a known number of periods.
      const uint32_t expected_q8 = period_q8_ << shift;
      const uint32_t measured_q8 = ((middle_ - anchor_) << 8) + middle_part_q8_ - anchor_part_q8_;
      const int32_t more_q8 = static_cast<int32_t>(measured_q8 - expected_q8);
      set_period_q8(period_q8_ + static_cast<uint32_t>(more_q8 >> shift));
      widening_q8_ = uncertainty_q8 > kLeastWidening_q8 ? uncertainty_q8 : kLeastWidening_q8;
    }
  }
  if (since_anchor_ >= kLongestRow || half_q8_ < anchor_half_q8_ >> 2) {
    anchor_ = middle_;
    anchor_part_q8_ = middle_part_q8_;
    anchor_half_q8_ = half_q8_;
    since_anchor_ = 0;
  }
}

// No chip is further off than the tolerance. A bus that is too slow to see the ends must not lead
// the estimate astray.
void ConversionClock::set_period_q8(uint32_t period_q8) {
  const int32_t tolerance_q8 = static_cast<int32_t>(nominal_q8_ >> kToleranceShift);
  int32_t slow_q8 = static_cast<int32_t>(period_q8 - nominal_q8_);
  if (slow_q8 > tolerance_q8) slow_q8 = tolerance_q8;
  if (slow_q8 < -tolerance_q8) slow_q8 = -tolerance_q8;
  period_q8_ = nominal_q8_ + static_cast<uint32_t>(slow_q8);
  // A division takes 600 cycles: here, since by_chip_ticks() is needed between two transfers.
  slow_q10_ = static_cast<int8_t>(slow_q8 / static_cast<int32_t>((nominal_q8_ >> 10) + 1));
}

}  // namespace opjoule
