// Follows a converter that runs by its own oscillator, from nothing but polls of its ready flag.
//
// A poll says only whether the conversion had ended when the poll looked. The clock keeps an
// interval in which the end must lie; a poll aimed at its middle halves it. From one conversion to
// the next the interval moves by the period and widens by what is not known of the period, which is
// measured over ever longer rows of conversions. So the stamp of a conversion (the middle of its
// interval) is uncertain by half a poll distance at first (36 us), by 2 us after about 8
// conversions and 1 us later, where the raw time of the successful poll would be late by anything
// up to a poll distance. A conversion that is missed shows as an end a whole period off.
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

  // When the next poll should look at the flag; the past means at once.
  uint32_t aim_ticks() const { return aim_; }

  // A poll looked at `look_ticks` and the flag was not set.
  void not_ready(uint32_t look_ticks);

  // A poll looked at `look_ticks` and the flag was set. Gives the number of conversions that ended
  // before this one without having been seen (0 if all is well).
  uint8_t ready(uint32_t look_ticks);

  // An alert line said that the conversion has ended: not after `alert_ticks`,
  // and no longer before it than an interrupt may be held up. Gives what
  // ready() gives.
  uint8_t alerted(uint32_t alert_ticks);

  // Best estimate of the end of the conversion last found ready.
  uint32_t end_ticks() const { return end_; }

  // The flag is overdue by more than the chip's tolerance: the converter does not run as told.
  bool overdue(uint32_t look_ticks) const;

  uint32_t period_ticks() const { return period_q8_ >> 8; }

 private:
  int32_t from_middle_q8(uint32_t look_ticks) const;
  void move_middle_q8(int32_t by_q8);
  uint8_t skip_missed(int32_t *from_middle_q8);
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
  uint8_t ready_probes_;   // looks into the interval in a row that found the flag set
  uint16_t since_anchor_;  // conversions since then
  uint32_t aim_;
  uint32_t end_;
  bool followed_;  // an end has been seen since reset()
};

}  // namespace opjoule

#endif  // OPJOULE_SENSOR_CONVERSION_CLOCK_H_
