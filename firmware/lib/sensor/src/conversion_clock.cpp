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
// From the acknowledged write to the start of the conversion. The data sheet does not give it, only
// 40 us for leaving power-down (SBOS448G, 7.5); the clock corrects it by measurement.
constexpr int32_t kStartHalf_q8 = 24L << 8;
// The data sheet's longest conversion time is 10 % above the typical one; an eighth leaves room.
constexpr uint8_t kToleranceShift = 3;
constexpr uint16_t kLongestRow = 256;
}  // namespace

void ConversionClock::reset(uint32_t nominal_period_ticks) {
  period_q8_ = nominal_q8_ = nominal_period_ticks << 8;
  followed_ = false;
}

void ConversionClock::restart(uint32_t start_ticks) {
  middle_ = start_ticks + period_ticks();
  middle_part_q8_ = 0;
  if (followed_) {
    half_q8_ = kStartHalf_q8;
    since_anchor_ = kLongestRow;  // the row begins at the first end
    aim_ = middle_;
    return;
  }
  half_q8_ = static_cast<int32_t>(period_q8_ >> kToleranceShift);
  widening_q8_ = period_q8_ >> kToleranceShift;
  ready_probes_ = 0;
  anchor_ = start_ticks;
  anchor_part_q8_ = 0;
  anchor_half_q8_ = kStartHalf_q8;
  since_anchor_ = 0;
  aim_ = middle_ - (period_ticks() >> kToleranceShift);
}

void ConversionClock::not_ready(uint32_t look_ticks) {
  ready_probes_ = 0;
  const int32_t look_q8 = from_middle_q8(look_ticks) - kStampDelay_q8;
  if (look_q8 >= half_q8_) {
    surprise();
    move_middle_q8(look_q8 + half_q8_);
  } else if (look_q8 > -half_q8_) {
    narrow(look_q8, half_q8_);
  }
  aim_ = followed_ ? middle_ : look_ticks;
}

uint8_t ConversionClock::ready(uint32_t look_ticks) {
  int32_t look_q8 = from_middle_q8(look_ticks);
  const uint8_t missed = skip_missed(&look_q8);
  if (look_q8 <= -half_q8_) {
    surprise();
    move_middle_q8(look_q8 - half_q8_);
  } else if (look_q8 < half_q8_) {
    narrow(-half_q8_, look_q8);
    doubt();
  }
  complete();
  return missed;
}

// A poll inside the interval should find the flag set half of the time. If it always does,
// conversions end earlier than estimated.
void ConversionClock::doubt() {
  if (++ready_probes_ < kMostReadyProbes) return;
  ready_probes_ = 0;
  surprise();
  half_q8_ *= 2;
  move_middle_q8(-half_q8_);
}

uint8_t ConversionClock::alerted(uint32_t alert_ticks) {
  int32_t high_q8 = from_middle_q8(alert_ticks);
  const uint8_t missed = skip_missed(&high_q8);
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

// Moves on by whole conversions until `from_middle_q8` belongs to the one that is waited for.
uint8_t ConversionClock::skip_missed(int32_t* from_middle_q8) {
  uint8_t missed = 0;
  while (followed_ && *from_middle_q8 > static_cast<int32_t>(period_q8_ / 2) && missed < 255) {
    move_middle_q8(static_cast<int32_t>(period_q8_));
    *from_middle_q8 -= static_cast<int32_t>(period_q8_);
    ++missed;
    ++since_anchor_;
  }
  return missed;
}

// The conversion has ended in the middle of its interval; from now on the next one is waited for.
void ConversionClock::complete() {
  end_ = middle_ + (middle_part_q8_ >> 7);
  ++since_anchor_;
  measure_period();
  followed_ = true;
  move_middle_q8(static_cast<int32_t>(period_q8_));
  half_q8_ += static_cast<int32_t>(widening_q8_);
  aim_ = middle_;
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

// An impossible answer: the period is less well known than assumed.
void ConversionClock::surprise() {
  half_q8_ = kLeastHalf_q8 + static_cast<int32_t>(widening_q8_);
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
      period_q8_ += static_cast<uint32_t>(more_q8 >> shift);
      limit_period();
      widening_q8_ = uncertainty_q8 > kLeastWidening_q8 ? uncertainty_q8 : kLeastWidening_q8;
    }
  }
  if (since_anchor_ >= kLongestRow) {
    anchor_ = middle_;
    anchor_part_q8_ = middle_part_q8_;
    anchor_half_q8_ = half_q8_;
    since_anchor_ = 0;
  }
}

// No chip is further off than this. A bus that is too slow to see the ends must not lead the
// estimate astray.
void ConversionClock::limit_period() {
  const uint32_t tolerance_q8 = nominal_q8_ >> kToleranceShift;
  if (period_q8_ > nominal_q8_ + tolerance_q8) period_q8_ = nominal_q8_ + tolerance_q8;
  if (period_q8_ < nominal_q8_ - tolerance_q8) period_q8_ = nominal_q8_ - tolerance_q8;
}

}  // namespace opjoule
