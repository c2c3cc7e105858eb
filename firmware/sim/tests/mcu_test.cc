// The microcontroller's peripherals, run with the small program tests/avr/sampler.c.
#include "mcu/mcu.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "mcu/sync_input.h"
#include "mcu/timer_flags.h"
#include "mcu/twi.h"
#include "mcu/uart.h"
#include "sensors/ina219.h"

namespace opjoule::rig {
namespace {

constexpr std::uint64_t kByte_cycles = 320;  // ten bits at 500 kbaud
constexpr std::uint64_t kBit_cycles = 40;    // of the I2C bus at 400 kHz

struct Report {
  char kind;
  std::uint32_t value;
  std::uint64_t cycle;  // at which its last byte had been sent
};

struct Bench {
  Bench() {
    clear_timer_flags_singly(mcu);
    profile.add(0, 0.5, 5);
    supply.start_at(0);
    twi.attach(0x40, sensor);
  }
  void start() { send('x'); }
  void send(std::uint8_t byte) { uart.feed(&byte, 1); }
  void run(double seconds) {
    mcu.run_until(mcu.cycle() + static_cast<std::uint64_t>(seconds * 16e6));
  }

  std::vector<Report> reports(char kind) const {
    std::vector<Report> found;
    for (std::size_t i = 0; i + 6 <= bytes.size(); i += 6) {
      std::uint32_t value = 0;
      for (std::size_t j = 1; j < 5; ++j) value = value << 8 | bytes[i + j];
      if (bytes[i] == kind) found.push_back({kind, value, cycles[i + 5]});
    }
    return found;
  }

  Profile profile;
  Supply supply{profile};
  Mcu mcu{SAMPLER_ELF};
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint64_t> cycles;
  Uart uart{mcu, [this](std::uint8_t byte) {
              bytes.push_back(byte);
              cycles.push_back(mcu.cycle());
            }};
  Twi twi{mcu};
  std::vector<std::uint64_t> played;
  SyncInput sync{mcu, SyncPin::kD8, [this](std::uint64_t cycle, bool) { played.push_back(cycle); }};
  Ina219 sensor{supply, {}, 1};
};

TEST_CASE("the program samples the sensor without missing a conversion") {
  Bench bench;
  bench.start();
  bench.run(0.2);
  const auto samples = bench.reports('S');
  REQUIRE(samples.size() > 180);
  for (const auto& sample : samples) {
    CHECK((sample.value >> 16) == 5000);
    CHECK(((sample.value & 0xFFFF) >> 3) == 1250);
  }
  CHECK(bench.sensor.shunt_count().missed() == 0);
  CHECK(bench.sensor.shunt_count().read_twice() == 0);
}

TEST_CASE("bytes follow each other at ten bits each, through two buffers") {
  Bench bench;
  bench.start();
  bench.run(0.05);
  REQUIRE(bench.bytes.size() > 60);
  // A program that polls and writes at once keeps the line busy: within a report no bit is idle.
  // The sent call comes up to four cycles late, at the end of an instruction.
  for (std::size_t i = 1; i < 60; ++i) {
    if (i % 6 == 0) continue;
    const std::uint64_t gap = bench.cycles[i] - bench.cycles[i - 1];
    CHECK(gap >= kByte_cycles - 4);
    CHECK(gap <= kByte_cycles + 4);
  }
  CHECK(bench.cycles[5] - bench.cycles[0] <= 5 * kByte_cycles + 4);
}

TEST_CASE("bytes from the host arrive at the line rate and in order") {
  Bench bench;
  bench.start();
  bench.run(0.01);
  const std::uint8_t text[] = {'a', 'b'};
  bench.uart.feed(text, 2);
  bench.run(0.01);
  const auto echoes = bench.reports('B');
  REQUIRE(echoes.size() >= 3);
  CHECK(echoes[0].value == 0x78787878);  // the byte that started it
  CHECK(echoes[1].value == 0x61616161);
  CHECK(echoes[2].value == 0x62626262);
}

TEST_CASE("bytes that the program does not read in time are lost and counted") {
  Bench bench;
  bench.start();
  bench.run(0.01);
  const std::vector<std::uint8_t> burst(40, 'z');
  bench.uart.feed(burst.data(), burst.size());
  bench.run(0.05);
  CHECK(bench.uart.overruns() > 0);
  const std::size_t accounted = bench.reports('B').size() + bench.uart.overruns();
  CHECK(accounted == 1 + burst.size());
}

/// A device that keeps the cycle at which each byte ended.
struct Recorder final : I2cDevice {
  bool select(bool, double now_s) override { return note(now_s); }
  bool write(std::uint8_t, double now_s) override { return note(now_s); }
  std::uint8_t read(double now_s) override { return note(now_s), 0; }
  bool note(double now_s) {
    ends.push_back(static_cast<std::uint64_t>(now_s * 16e6 + 0.5));
    return true;
  }
  std::vector<std::uint64_t> ends;
};

TEST_CASE("bits on the bus take the time that TWBR asks for") {
  Bench bench;
  Recorder recorder;
  bench.twi.attach(0x40, recorder);
  bench.start();
  bench.run(1e-3);
  // First the write of the configuration: address, pointer and two bytes. Between the bytes the
  // program needs some instructions, but far less than a bit.
  REQUIRE(recorder.ends.size() > 4);
  for (std::size_t i = 1; i < 4; ++i) {
    const std::uint64_t gap = recorder.ends[i] - recorder.ends[i - 1];
    CHECK(gap >= 9 * kBit_cycles);
    CHECK(gap < 10 * kBit_cycles);
  }
  // A read of a register: START, 2 bytes, repeated START, 3 bytes, STOP.
  const std::uint64_t before = bench.twi.bus_cycles();
  const std::size_t bytes = recorder.ends.size();
  while ((recorder.ends.size() - bytes) < 50) bench.run(10e-6);
  const double reads = 10,
               bits = static_cast<double>(bench.twi.bus_cycles() - before) / kBit_cycles;
  CHECK(bits == doctest::Approx(reads * (1 + 18 + 1 + 27 + 1)).epsilon(0.05));
}

TEST_CASE("an address without a device is not acknowledged and the bus goes on") {
  Bench bench;
  Twi empty(bench.mcu);  // takes the registers over
  bench.start();
  bench.run(0.01);
  CHECK(empty.bus_cycles() > 100 * kBit_cycles);
  CHECK(bench.sensor.shunt_count().reads() == 0);
}

TEST_CASE("edges are captured to the tick, across counter overflows") {
  Bench bench;
  bench.start();
  bench.run(1e-3);
  // Timer 1 started within the first hundred cycles; edges close to its overflows each 65536 * 8
  // cycles are those that a lost overflow flag would put 32.8 ms off.
  std::vector<std::uint64_t> edges;
  bool level = false;
  for (std::uint64_t turn = 1; turn <= 30; ++turn)
    for (const int offset : {-80000, -40000, static_cast<int>(turn) * 5 - 20, 40000, 80000})
      edges.push_back(turn * 524288 + static_cast<std::uint64_t>(offset + 90));
  for (const auto cycle : edges) bench.sync.add(cycle, level = !level);
  bench.run(1.1);
  const auto captured = bench.reports('E');
  REQUIRE(captured.size() == edges.size());
  CHECK(bench.played == edges);
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    CHECK((captured[i].value >> 24) == (i % 2 == 0 ? 1 : 0));
    offsets.push_back(static_cast<std::int64_t>(edges[i]) -
                      8 * static_cast<std::int64_t>(captured[i].value & 0xFFFFFF));
  }
  const auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  CHECK(*most - *least <= 7);  // a tick is eight cycles
}

TEST_CASE("a brown-out starts the program anew, says so, and loses no edge behind it") {
  Bench bench;
  bench.start();
  bench.run(0.02);
  bench.sync.add(bench.mcu.cycle() + 16'000, true);
  bench.mcu.reset_brown_out();
  CHECK(bench.mcu.resets() == 1);
  CHECK((bench.mcu.reg(0x54) & 4) != 0);
  const std::size_t before = bench.bytes.size();
  bench.run(0.02);
  CHECK(bench.bytes.size() == before);  // waits for a byte from the host again
  CHECK(bench.played.size() == 1);
  bench.start();
  bench.run(0.02);
  CHECK(bench.bytes.size() > before + 60);
}

TEST_CASE("the crystal's error stretches time, not cycles") {
  Mcu exact(SAMPLER_ELF), fast(SAMPLER_ELF, {.error_ppm = 100});
  CHECK(exact.time_s(16'000'000) == 1);
  CHECK(fast.time_s(16'001'600) == doctest::Approx(1).epsilon(1e-12));
  CHECK(fast.cycle_at(1) == 16'001'600);
}

}  // namespace
}  // namespace opjoule::rig
