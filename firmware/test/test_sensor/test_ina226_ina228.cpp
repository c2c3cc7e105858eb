// The other chips of the same driver shape: what they are told, and what is refused.
#include <doctest/doctest.h>

#include "averaged_plan.h"
#include "ina226.h"
#include "ina228.h"
#include "tick_clock.h"

using namespace opjoule;
using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {
Configure wanted(Mode mode, uint8_t shunt_adc, uint8_t bus_adc, uint8_t range = 0) {
  return {0, static_cast<uint8_t>(mode), shunt_adc, bus_adc, range, 8, 64};
}
}  // namespace

TEST_CASE("INA226: 588 us shunt and bus without averaging, conversion ready at the ALERT pin") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(ina226::plan(wanted(Mode::pairs, 3, 3), 0x44, &plan, &detail) == Result::ok);
  CHECK(plan.sample_mode == 0x40DF);
  CHECK(plan.sample_ticks == 2 * 588 * kTicksPerUs);
  CHECK(plan.shunt_share_q8 == 128);
  REQUIRE(plan.setups == 1);
  CHECK(plan.setup[0].reg == 0x06);
  CHECK(plan.setup[0].value == 0x0400);
  CHECK(plan.map->clear == kNoRegister);
}

TEST_CASE("INA226: averaging multiplies both conversions") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(ina226::plan(wanted(Mode::pairs, (2 << 3) | 2, 2), 0x44, &plan, &detail) == Result::ok);
  CHECK(plan.sample_ticks == 16 * 2 * 332 * kTicksPerUs);
  const uint16_t expected[8] = {1, 4, 16, 64, 128, 256, 512, 1024};
  for (uint8_t code = 0; code < 8; ++code) CHECK(averages(code) == expected[code]);
}

TEST_CASE("INA226: a mean stays readable until the next one's last shunt conversion has ended") {
  SensorPlan plan;
  uint16_t detail;
  for (uint8_t code = 0; code < 8; ++code) {
    const uint8_t adc = static_cast<uint8_t>(code << 3 | 3);
    REQUIRE(ina226::plan(wanted(Mode::pairs, adc, 3), 0x44, &plan, &detail) == Result::ok);
    const uint32_t valid_ticks = plan.sample_ticks / 256 * plan.shunt_share_q8;
    CHECK(valid_ticks <= plan.sample_ticks - 588 * kTicksPerUs);
    CHECK(plan.shunt_share_q8 >= 255 - 128 / averages(code));
    REQUIRE(ina226::plan(wanted(Mode::shunts, adc, 3), 0x44, &plan, &detail) == Result::ok);
    CHECK(plan.shunt_share_q8 == 256);
  }
}

TEST_CASE("INA234: codes of 12 bits in the upper bits, and its range in the configuration") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(ina226::plan_12_bit(wanted(Mode::pairs, 3, 3, 1), 0x48, &plan, &detail) == Result::ok);
  CHECK(plan.sample_mode == 0x50DF);
  CHECK(plan.bus_mode == 0x50DE);
  CHECK(plan.map->shunt_shift == 4);
  CHECK(plan.map->bus_shift == 4);
  CHECK(plan.shunt_full_scale == 2047);
  CHECK(plan.bus_full_scale == 2047);
  REQUIRE(ina226::plan_12_bit(wanted(Mode::pairs, 3, 3, 0), 0x48, &plan, &detail) == Result::ok);
  CHECK(plan.sample_mode == 0x40DF);
  CHECK(ina226::plan_12_bit(wanted(Mode::pairs, 3, 3, 2), 0x48, &plan, &detail) ==
        Result::bad_value);
}

TEST_CASE("INA260: its constant bits are kept") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(ina226::plan_own_shunt(wanted(Mode::pairs, 3, 3), 0x40, &plan, &detail) == Result::ok);
  CHECK(plan.sample_mode == 0x60DF);
}

TEST_CASE("INA228: range and latch are set up before conversions begin") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(ina228::plan(wanted(Mode::shunts, 4, 4, 1), 0x40, &plan, &detail) == Result::ok);
  CHECK(plan.sample_mode == (0xA000 | (4 << 9) | (4 << 6)));
  CHECK(plan.bus_mode == (0x9000 | (4 << 9) | (4 << 6)));
  CHECK(plan.sample_ticks == 540 * kTicksPerUs);
  REQUIRE(plan.setups == 2);
  CHECK(plan.setup[0].value == 0xC000);
  CHECK(plan.setup[1].value == 0x0010);
  CHECK(plan.map->wide);
  CHECK(plan.shunt_full_scale == 524287);
}

TEST_CASE("what the chip or the bus cannot do is refused, with the field at fault") {
  struct Case {
    Configure configure;
    uint16_t field;
  };
  const Case cases[] = {
      {wanted(static_cast<Mode>(3), 3, 3), 1}, {wanted(Mode::pairs, 8 << 3, 3), 2},
      {wanted(Mode::shunts, 0, 3), 2},         {wanted(Mode::pairs, 4, 8), 3},
      {wanted(Mode::pairs, 4, 4, 2), 4},
  };
  for (const Case& one : cases) {
    SensorPlan plan;
    uint16_t detail = 99;
    CHECK(ina226::plan(one.configure, 0x40, &plan, &detail) == Result::bad_value);
    CHECK(detail == one.field);
    CHECK(ina228::plan(one.configure, 0x40, &plan, &detail) == Result::bad_value);
    CHECK(detail == one.field);
  }
}
