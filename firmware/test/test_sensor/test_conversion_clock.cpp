// The clock that follows the converter, against converters with true times.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include "conversion_clock.h"
#include "tick_clock.h"

using opjoule::ConversionClock;

namespace {

struct Converter {
  double start;
  double period;
  long ended = 0;  // conversions found ready

  double next_end() const { return start + static_cast<double>(ended + 1) * period; }
};

struct Outcome {
  double worst_early = 0;  // stamp errors of the first 64 conversions, ticks
  double worst_late = 0;   // and of all after
  long missed = 0;
};

// Polls as the sampler does: at the aim, at least a transfer apart, stamped a little late.
Outcome follow(double nominal, double error, double stamp_delay, long conversions,
               uint32_t origin) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> delay(0, stamp_delay);
  Converter converter{origin + 5.0, nominal * (1 + error)};
  ConversionClock clock;
  clock.reset(static_cast<uint32_t>(nominal));
  clock.restart(origin);
  Outcome outcome;
  double now = origin;
  while (converter.ended < conversions) {
    const double aim =
        now + static_cast<int32_t>(clock.aim_ticks() -
                                   static_cast<uint32_t>(std::fmod(now, 4294967296.0)));
    now = std::max(aim, now + 160);
    const uint32_t stamp =
        static_cast<uint32_t>(static_cast<uint64_t>(now + delay(random)) & 0xFFFFFFFF);
    if (now < converter.next_end()) {
      clock.not_ready(stamp);
      continue;
    }
    const double end = converter.next_end();
    ++converter.ended;
    outcome.missed += clock.ready(stamp);
    const double late = static_cast<int32_t>(
        clock.end_ticks() - static_cast<uint32_t>(static_cast<uint64_t>(end) & 0xFFFFFFFF));
    double& worst = converter.ended <= 64 ? outcome.worst_early : outcome.worst_late;
    worst = std::max(worst, std::fabs(late));
    now += 500;
  }
  return outcome;
}

}  // namespace

TEST_CASE(
    "stamps come within 4 us whatever the oscillator's error, and no conversion seems missed") {
  for (const double nominal : {1064.0, 2128.0, 8520.0, 272400.0}) {
    for (const double error : {-0.09, -0.003, 0.0, 0.00005, 0.003, 0.09}) {
      CAPTURE(nominal);
      CAPTURE(error);
      const Outcome outcome = follow(nominal, error, 5, 2000, 1000);
      CHECK(outcome.missed == 0);
      CHECK(outcome.worst_early <= 150);
      CHECK(outcome.worst_late <= 8);
    }
  }
}

TEST_CASE("the wrap of the 32-bit ticks goes unnoticed") {
  const Outcome outcome = follow(1064, 0.001, 2, 3000, 0xFFFFFFFFu - 1064 * 1000);
  CHECK(outcome.missed == 0);
  CHECK(outcome.worst_late <= 8);
}

TEST_CASE("a conversion that was never seen is counted") {
  ConversionClock clock;
  clock.reset(1000);
  clock.restart(0);
  uint32_t seen = 0;
  for (uint32_t number = 1; number <= 50; ++number) {
    clock.not_ready(number * 1000 - 20);
    seen += clock.ready(number * 1000 + 1);
  }
  CHECK(seen == 0);
  CHECK(clock.ready(53 * 1000 + 1) == 2);
}

TEST_CASE("an alert line's stamps, late by an interrupt's wait, are bettered to 2 us") {
  std::mt19937 random(2);
  std::uniform_int_distribution<uint32_t> delay(0, 12);
  ConversionClock clock;
  clock.reset(2352);
  clock.restart(100);
  uint32_t worst = 0;
  for (uint32_t number = 1; number <= 2000; ++number) {
    const uint32_t end = 100 + number * 2355;
    CHECK(clock.alerted(end + 2 + delay(random)) == 0);
    const int32_t error = static_cast<int32_t>(clock.end_ticks() - end);
    if (number > 100) worst = std::max(worst, static_cast<uint32_t>(std::abs(error)));
  }
  CHECK(worst <= 12);
}

TEST_CASE(
    "a period that was first taken too long is found out, though every poll finds the flag set") {
  // The bus was busy with another sensor at first: the first end was seen 100 us late.
  ConversionClock clock;
  clock.reset(8512);
  clock.restart(0);
  clock.ready(8512 + 200);
  double now = 8712;
  long ended = 1;
  int settled_at = 0;
  for (int number = 2; number <= 400; ++number) {
    for (;;) {
      const double aim = now + static_cast<int32_t>(clock.aim_ticks() - static_cast<uint32_t>(now));
      now = std::max(aim, now + 160);
      const bool ready = now >= static_cast<double>(ended + 1) * 8512;
      if (!ready) {
        clock.not_ready(static_cast<uint32_t>(now));
        continue;
      }
      ++ended;
      CHECK(clock.ready(static_cast<uint32_t>(now)) == 0);
      break;
    }
    const int32_t error =
        static_cast<int32_t>(clock.end_ticks() - static_cast<uint32_t>(ended * 8512));
    if (std::abs(error) > 16) settled_at = number;
  }
  CHECK(settled_at < 100);
}

TEST_CASE("a chip that is configured anew keeps its period, and with it other times") {
  ConversionClock clock;
  clock.reset(1064);
  clock.restart(0);
  for (uint32_t number = 1; number <= 300; ++number) {
    clock.not_ready(number * 970 - 20);
    clock.ready(number * 970 + 1);
  }
  clock.forget_delay();
  CHECK(clock.period_ticks() == 970);
  CHECK(std::abs(static_cast<int32_t>(clock.by_chip_ticks(2128)) - 1940) <= 3);
  clock.reset(1064);
  CHECK(clock.by_chip_ticks(2128) == 2128);
}

TEST_CASE("a flag that does not come is overdue") {
  ConversionClock clock;
  clock.reset(2128);
  clock.restart(0);
  CHECK_FALSE(clock.overdue(2400));
  CHECK(clock.overdue(6500));
}

TEST_CASE("a tick stamp is right on both sides of an overflow that is still pending") {
  CHECK(opjoule::extend_ticks(0xFFFE, 7, false) == 0x7FFFEu);
  CHECK(opjoule::extend_ticks(0xFFFE, 7, true) == 0x7FFFEu);
  CHECK(opjoule::extend_ticks(0x0003, 7, true) == 0x80003u);
  CHECK(opjoule::extend_ticks(0x0003, 8, false) == 0x80003u);
}
