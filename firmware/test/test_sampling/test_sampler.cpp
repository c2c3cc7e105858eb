// The sampler against an INA219 model on a bus with true times.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ina219_on_bus.h"
#include "sampler.h"

using namespace opjoule;
using protocol::Fault;
using protocol::Flag;
using protocol::Mode;

namespace {

protocol::Configure configure(Mode mode, uint8_t adc, uint16_t bus_every = 0) {
  return {0, static_cast<uint8_t>(mode), adc, adc, 3, 8, bus_every};
}

struct Rig {
  explicit Rig(const protocol::Configure& wanted, double clock_error = 0) : chip(clock_error) {
    SensorPlan plan;
    uint16_t detail;
    REQUIRE(ina219::plan(wanted, 0x40, &plan, &detail) == protocol::Result::ok);
    sampler.configure(0, plan);
    REQUIRE(sampler.start(static_cast<uint32_t>(chip.now_ticks)));
  }

  void step() {
    double start = chip.now_ticks;
    if (!at_once) {
      start +=
          static_cast<int32_t>(sampler.next_start_ticks() - static_cast<uint32_t>(chip.now_ticks));
    }
    const BusTransfer& next = sampler.next_transfer();
    const BusResult result = chip.transfer(next, sampler.next_sets_pointer(), start);
    const bool busy = samples.size() >= busy_from && samples.size() < busy_from + 6;
    chip.now_ticks += busy ? busy_ticks : work_ticks;
    at_once = sampler.advance(result);
    sampler.digest(result);
    SampleQueue& queue = sampler.queue();
    while (queue.size() != 0) {
      samples.push_back(queue.at(0));
      queue.take(0);
      queue.free_taken();
    }
  }

  void run_seconds(double seconds) {
    const double end = chip.now_ticks + seconds * kTicksPerSecond;
    while (chip.now_ticks < end) step();
  }

  // Of the conversions, without bus readings.
  std::vector<Sample> conversions() const {
    std::vector<Sample> found;
    std::copy_if(samples.begin(), samples.end(), std::back_inserter(found),
                 [](const Sample& sample) { return !(sample.flags & kBusOnly); });
    return found;
  }

  double work_ticks = 30;  // the sampler's own, each transfer
  double busy_ticks = 30;  // and while a few samples from this number on are taken
  size_t busy_from = 0;
  bool at_once = false;
  Ina219OnBus chip;
  FaultCounters faults;
  Sampler sampler{faults};
  std::vector<Sample> samples;
};

double worst_stamp_error(const Rig& rig, size_t from) {
  const auto found = rig.conversions();
  double worst = 0;
  for (size_t i = from; i < found.size(); ++i) {
    const double error =
        static_cast<int32_t>(found[i].end_ticks - static_cast<uint32_t>(rig.chip.shunt_ends[i]));
    worst = std::max(worst, std::fabs(error));
  }
  return worst;
}

}  // namespace

TEST_CASE("pairs: every conversion is read once, at any oscillator error the chip may have") {
  for (const double error : {-0.09, -0.003, 0.0, 0.00005, 0.003, 0.09}) {
    for (const uint8_t adc : {3, 9, 11}) {
      CAPTURE(error);
      CAPTURE(adc);
      Rig rig(configure(Mode::pairs, adc), error);
      rig.run_seconds(adc > 8 ? 20 : 3);
      CHECK(rig.chip.repeated_reads == 0);
      CHECK(rig.chip.missed == 0);
      CHECK(rig.faults.of(Fault::conversion_missed) == 0);
      CHECK(worst_stamp_error(rig, 0) <= 150);
      CHECK(worst_stamp_error(rig, 64) <= 8);
    }
  }
}

TEST_CASE("shunts: every conversion is read once and the bus voltage comes as often as asked") {
  for (const double error : {-0.05, 0.0, 0.0001, 0.09}) {
    CAPTURE(error);
    Rig rig(configure(Mode::shunts, 3, 64), error);
    rig.run_seconds(3);
    const size_t conversions = rig.conversions().size();
    CHECK(rig.chip.repeated_reads == 0);
    CHECK(rig.chip.missed == 0);
    CHECK(rig.faults.of(Fault::conversion_missed) == 0);
    CHECK(worst_stamp_error(rig, 128) <= 16);
    CHECK(conversions > 3 * 1879 / (1 + error) * 64 / 67);
    CHECK(rig.samples.size() - conversions >= conversions / 64);
  }
}

TEST_CASE("every conversion is read once and stamped, whatever the chip does at a change of mode") {
  struct Case {
    Mode mode;
    uint8_t bus_adc;
    uint16_t bus_every;
  };
  for (const Case& one : {Case{Mode::pairs, 3, 0}, Case{Mode::shunts, 3, 64},
                          Case{Mode::shunts, 3, 32}, Case{Mode::shunts, 0, 64}}) {
    for (const bool finishes : {false, true}) {
      for (double delay_us = 0; delay_us <= 480; delay_us += 13.5) {
        for (const double error : {-0.09, 0.0002, 0.09}) {
          CAPTURE(static_cast<int>(one.mode));
          CAPTURE(static_cast<int>(one.bus_adc));
          CAPTURE(one.bus_every);
          CAPTURE(finishes);
          CAPTURE(delay_us);
          CAPTURE(error);
          protocol::Configure wanted = configure(one.mode, 3, one.bus_every);
          wanted.bus_adc = one.bus_adc;
          Rig rig(wanted, error);
          rig.chip.start_delay_ticks = delay_us * kTicksPerUs;
          rig.chip.finishes_conversion = finishes;
          rig.run_seconds(0.5);
          CHECK(rig.chip.repeated_reads == 0);
          CHECK(rig.faults.of(Fault::conversion_missed) == 0);
          CHECK(rig.chip.missed == 0);
          CHECK(worst_stamp_error(rig, 192) <= 40);
        }
      }
    }
  }
}

TEST_CASE("what a busy controller clears unread around a bus reading is counted to the last") {
  long missed = 0;
  for (const uint8_t bus_adc : {3, 0}) {
    for (const double error : {-0.09, -0.03, 0.0, 0.09}) {
      for (double work_us = 15; work_us <= 60; work_us += 2.5) {
        CAPTURE(bus_adc);
        CAPTURE(error);
        CAPTURE(work_us);
        protocol::Configure wanted = configure(Mode::shunts, 3, 32);
        wanted.bus_adc = bus_adc;
        Rig rig(wanted, error);
        rig.chip.finishes_conversion = true;
        rig.busy_from = 28;
        rig.busy_ticks = work_us * kTicksPerUs;
        rig.run_seconds(0.1);
        CHECK(rig.chip.repeated_reads == 0);
        CHECK(rig.faults.of(Fault::conversion_missed) == rig.chip.missed);
        missed += rig.chip.missed;
      }
    }
  }
  CHECK(missed > 0);
}

TEST_CASE("a sensor that has fallen back to its power-on configuration is found out") {
  Rig rig(configure(Mode::pairs, 3));
  rig.run_seconds(0.5);
  rig.chip.lose_supply();
  rig.run_seconds(0.5);
  CHECK(rig.faults.of(Fault::sensor_reset) == 1);
}

TEST_CASE("a conversion at the end of the shunt's range is marked, and no other") {
  for (const Mode mode : {Mode::pairs, Mode::shunts}) {
    Rig rig({0, static_cast<uint8_t>(mode), 3, 3, 0, 8, 64});  // 40 mV: 4,000
    rig.chip.shunt_most = 4000;
    rig.chip.shunt_step = 8;
    rig.run_seconds(1);
    long marked = 0;
    for (const Sample& sample : rig.conversions()) {
      const bool clipped = (sample.flags & static_cast<uint8_t>(Flag::overflow)) != 0;
      CHECK(clipped == (sample.shunt == 4000));
      marked += clipped;
    }
    CHECK(marked > 100);
    CHECK(rig.faults.of(Fault::shunt_overflow) == marked);
  }
}

TEST_CASE("a bus voltage at the end of its range marks the samples that it belongs to") {
  for (const Mode mode : {Mode::pairs, Mode::shunts}) {
    Rig rig(configure(mode, 3, 64));
    rig.chip.bus_code = 8000;
    rig.run_seconds(0.2);
    const size_t before = rig.conversions().size();
    rig.chip.bus_code = 1250;
    rig.run_seconds(0.2);
    const auto found = rig.conversions();
    for (size_t i = 0; i < found.size(); ++i) {
      const bool clipped = (found[i].flags & static_cast<uint8_t>(Flag::overflow)) != 0;
      if (i < before) CHECK(clipped);
      if (i > before + 64) CHECK_FALSE(clipped);
    }
  }
}

TEST_CASE("what does not fit into the queue is counted with what of it was clipped") {
  SampleQueue queue;
  queue.clear();
  const uint8_t clipped = static_cast<uint8_t>(Flag::overflow);
  for (uint32_t i = 0; i < SampleQueue::kCapacity; ++i) queue.push({i, 1, 0, clipped, 0});
  for (uint32_t i = 0; i < 5; ++i) queue.push({100 + i, 1, 0, i < 3 ? clipped : uint8_t{0}, 0});
  while (queue.size() != 0) {
    queue.take(0);
    queue.free_taken();
  }
  Tally tally;
  REQUIRE(queue.take_tally(0, &tally));
  CHECK(tally.count == 5);
  CHECK(tally.clipped == 3);
}
