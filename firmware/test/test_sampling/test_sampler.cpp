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
    const BusResult result =
        next.flags & kPaced
            ? chip.row(next, sampler.next_sets_pointer(),
                       chip.now_ticks + static_cast<int32_t>(sampler.next_start_ticks() -
                                                             static_cast<uint32_t>(chip.now_ticks)),
                       sampler.paced(), sampler.even_queue())
            : chip.transfer(next, sampler.next_sets_pointer(), start);
    chip.now_ticks += work_ticks;
    at_once = sampler.advance(result);
    sampler.digest(result);
    if (sampler.even()) return take_even();
    SampleQueue& queue = sampler.queue();
    while (queue.size() != 0) {
      samples.push_back(queue.at(0));
      queue.take(0);
      queue.free_taken();
    }
  }

  void take_even() {
    EvenBlock block;
    uint16_t taken;
    uint8_t available;
    bool complete;
    while (sampler.even_queue().front(&block, &taken, &available, &complete)) {
      for (uint8_t i = 0; i < available; ++i) {
        const uint32_t number = taken + i;
        samples.push_back({block.first_end_ticks + ((block.period_q8 * number) >> 8),
                           sampler.even_queue().at(i), 0, i == 0 ? block.flags : uint8_t{0}, 0});
      }
      sampler.even_queue().take(available);
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
    CHECK(worst_stamp_error(rig, 64) <= 16);
    CHECK(conversions > 3 * 1879 / (1 + error) * 64 / 67);
    CHECK(rig.samples.size() - conversions >= conversions / 64);
  }
}

TEST_CASE("even rows: every conversion is read once, whatever the oscillator and the start delay") {
  for (const uint8_t adc : {0, 1, 3, 9}) {
    for (const double error : {-0.02, 0.0, 0.001, 0.09}) {
      for (const double start_delay : {0.0, 30.0}) {
        CAPTURE(adc);
        CAPTURE(error);
        CAPTURE(start_delay);
        Rig rig({0, static_cast<uint8_t>(Mode::shunts_even), adc, 3, 3, 32, 64}, error);
        rig.work_ticks = 15;
        rig.chip.start_delay_ticks = start_delay;
        rig.run_seconds(3);
        // The calibration's own conversions are not read, nor those begun before a row ends.
        CHECK(rig.chip.repeated_reads == 0);
        CHECK(rig.faults.of(Fault::conversion_missed) == 0);
        CHECK(rig.chip.missed_within_rows == 0);
        CHECK(worst_stamp_error(rig, 0) <= 48 + 0.001 * 64 * rig.chip.period_ticks());
        CHECK(rig.samples.size() % 64 == 0);
      }
    }
  }
}

TEST_CASE("a row that the bus cannot keep up with ends early, and says so") {
  Rig rig({0, static_cast<uint8_t>(Mode::shunts_even), 0, 3, 3, 32, 64}, -0.08);
  rig.chip.overhead_ticks = 8;
  rig.run_seconds(0.5);
  CHECK(rig.faults.of(Fault::conversion_missed) > 0);
  CHECK(rig.chip.repeated_reads == 0);
  bool missed_before = false;
  for (const Sample& sample : rig.samples) {
    missed_before |= (sample.flags & static_cast<uint8_t>(Flag::missed_before)) != 0;
  }
  CHECK(missed_before);
}
