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
// Pure arithmetic on ticks, no hardware. Called from one context.
#ifndef OPJOULE_SENSOR_CONVERSION_CLOCK_H_
#define OPJOULE_SENSOR_CONVERSION_CLOCK_H_

#include <stdint.h>

namespace opjoule {

class ConversionClock {
 public:
  // A converter of this nominal period; nothing is known of the real one.
  void reset(uint32_t nominal_period_ticks);

  // A conversion has been started at `start_ticks` (by writing the configuration).
  void restart(uint32_t start_ticks);

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

  uint32_t period_ticks() const { return period_q8_ >> 8; }

 private:
  int32_t from_middle_q8(uint32_t look_ticks) const;
  void move_middle_q8(int32_t by_q8);
  uint8_t skip_missed(int32_t* from_middle_q8);
  void complete();
  void narrow(int32_t low_q8, int32_t high_q8);
  void surprise();
  void doubt();
  void measure_period();
  void limit_period();

  // All _q8 are in 1/256 tick.
  uint32_t middle_;         // of the interval of the end waited for: whole ticks,
  uint8_t middle_part_q8_;  // and the rest
  int32_t half_q8_;         // half its width
  uint32_t nominal_q8_;
  uint32_t period_q8_;
  uint32_t widening_q8_;  // uncertainty of the period
  uint32_t anchor_;       // a known end (or start), from which the period is measured,
  uint8_t anchor_part_q8_;
  int32_t anchor_half_q8_;
  uint8_t ready_probes_;  // polls inside the interval, one after the other, that found the flag set
  uint16_t since_anchor_;  // conversions since then
  uint32_t aim_;
  uint32_t end_;
  bool followed_;  // an end has been seen since reset()
};

}  // namespace opjoule

#endif  // OPJOULE_SENSOR_CONVERSION_CLOCK_H_
