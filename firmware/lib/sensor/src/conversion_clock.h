// Finds out when the conversions of a chip end, which runs by its own oscillator, from polls of its
// ready flag alone.
//
// A poll tells only whether the conversion had ended when the flag was read. The clock keeps an
// interval in which the end must lie; a poll aimed at its middle halves it. From one conversion to
// the next the interval moves by one period, and widens by the uncertainty of the period, which is
// measured over longer and longer runs of conversions. The time stamp of a conversion is the middle
// of its interval. It is uncertain by half the distance of two polls at first (36 us), by 2 us
// after about 8 conversions, and by 1 us later; the time of the successful poll itself could be
// late by a whole poll distance. A missed conversion shows as an end that is a whole period off.
//
// Answers that contradict the interval replace it: the end lies between the last poll that came too
// early and the first that did not, whatever was thought before.
//
// Conversions come in rows, each begun by writing the configuration. From that write to the start
// of the first conversion a chip takes a time that its data sheet does not give. The clock polls
// without pause for the first end of a row, measures the delay once the row's period is known, and
// expects the same delay from the next row on.
//
// Pure arithmetic on ticks, no hardware. Called from one context.
#ifndef OPJOULE_SENSOR_CONVERSION_CLOCK_H_
#define OPJOULE_SENSOR_CONVERSION_CLOCK_H_

#include <stdint.h>

namespace opjoule {

class ConversionClock {
 public:
  // A converter of this nominal period; nothing is known of the real one.
  void reset(uint32_t nominal_period_ticks);

  // The chip is configured anew, as after an outage: its period, once measured, is still the same.
  void forget_delay();

  // A row of conversions has been asked for at `start_ticks`.
  void restart(uint32_t start_ticks);

  // The next end is a period or more after `start_ticks`; nothing is learned from this row's delay.
  void begin_row(uint32_t start_ticks);

  // The flag was cleared at `ticks`: the end waited for comes later.
  void cleared(uint32_t ticks);

  // When the next poll should read the flag; a time in the past means at once.
  uint32_t aim_ticks() const { return aim_; }

  // A poll read the flag at `look_ticks`, and it was not set.
  void not_ready(uint32_t look_ticks);

  // A poll read the flag at `look_ticks`, and it was set. Gives the number of conversions that
  // ended before this one without being seen (0 if all is well).
  uint8_t ready(uint32_t look_ticks);

  // The alert line announced the end of the conversion: it came at `alert_ticks` at the latest, and
  // earlier by no more than an interrupt can be delayed. Gives what ready() gives.
  uint8_t alerted(uint32_t alert_ticks);

  // Best estimate of the end of the conversion last found ready.
  uint32_t end_ticks() const { return end_; }

  // The flag is overdue by more than the chip's tolerance: the chip does not convert as it was set.
  bool overdue(uint32_t look_ticks) const;

  // An end at `look_ticks` or before is too early for the first one of a row.
  bool too_early(uint32_t look_ticks) const;
  // A time that is nominally `nominal_ticks`, by the chip's own clock. Quick.
  uint32_t by_chip_ticks(uint32_t nominal_ticks) const;

  uint32_t period_ticks() const { return period_q8_ >> 8; }

 private:
  int32_t from_middle_q8(uint32_t look_ticks) const;
  void move_middle_q8(int32_t by_q8);
  uint8_t skip_missed(int32_t* from_middle_q8, int32_t most_q8);
  void skip_one();
  uint8_t found(int32_t high_q8);
  void learn_delay();
  void complete();
  void narrow(int32_t low_q8, int32_t high_q8);
  void surprise();
  void doubt();
  void measure_period();
  void set_period_q8(uint32_t period_q8);

  // All _q8 are in 1/256 tick.
  uint32_t middle_;         // of the interval of the end waited for: whole ticks,
  uint8_t middle_part_q8_;  // and the rest
  int32_t half_q8_;         // half its width
  uint32_t nominal_q8_;
  uint32_t period_q8_;
  uint32_t widening_q8_;  // uncertainty of the period
  int8_t slow_q10_;       // by how much the chip's times are longer than nominal, in 1/1024
  uint32_t anchor_;       // a known end (or start), from which the period is measured,
  uint8_t anchor_part_q8_;
  int32_t anchor_half_q8_;
  uint16_t since_anchor_;  // conversions since then
  uint32_t aim_;
  uint32_t end_;
  uint32_t start_;        // of the row
  uint32_t delay_ticks_;  // of a row's first conversion
  int32_t delay_half_q8_;
  uint32_t last_look_;  // the last poll that found the flag not set
  uint16_t row_;        // conversions that ended since the row began, kLongestRow or more: many
  // Polls inside the interval, one after the other, that found the flag set.
  uint8_t ready_probes_ : 4;
  bool followed_ : 1;  // an end has been seen since reset()
  bool delay_known_ : 1;
  bool learns_ : 1;  // the delay of this row is that of any row
  bool astray_ : 1;  // the end is later than it could be
};

}  // namespace opjoule

#endif  // OPJOULE_SENSOR_CONVERSION_CLOCK_H_
