// The INA219's registers and what the driver accepts.
#include <doctest/doctest.h>

#include "ina219.h"
#include "tick_clock.h"

using namespace opjoule;
using protocol::Configure;
using protocol::Mode;
using protocol::Result;

namespace {
Configure wanted(Mode mode, uint8_t shunt_adc, uint8_t bus_adc, uint8_t range = 3) {
  return {0, static_cast<uint8_t>(mode), shunt_adc, bus_adc, range, 8, 64};
}

Result plan_of(const Configure& configure, SensorPlan* plan, uint16_t* detail) {
  return ina219::plan(configure, 0x41, plan, detail);
}
}  // namespace

TEST_CASE("conversion times are those of the data sheet's table 5") {
  CHECK(ina219::conversion_ticks(0) == 84 * kTicksPerUs);
  CHECK(ina219::conversion_ticks(3) == 532 * kTicksPerUs);
  CHECK(ina219::conversion_ticks(4) == 84 * kTicksPerUs);
  CHECK(ina219::conversion_ticks(8) == 532 * kTicksPerUs);
  CHECK(ina219::conversion_ticks(15) == 128 * 532 * kTicksPerUs);
  CHECK(ina219::conversion_ticks(16) == 0);
}

TEST_CASE(
    "12-bit pairs at 320 mV are the chip's default but for another code of the same resolution") {
  SensorPlan plan;
  uint16_t detail;
  REQUIRE(plan_of(wanted(Mode::pairs, 3, 3), &plan, &detail) == Result::ok);
  const uint16_t expected = (ina219::kConfigurationDefault & ~(15 << 7)) | (8 << 7);
  CHECK(plan.sample_mode == expected);
  CHECK(plan.bus_mode == ((expected & ~7) | 6));
  CHECK(plan.sample_ticks == 1064 * kTicksPerUs);
  CHECK(plan.shunt_full_scale == 32000);
  CHECK(plan.address == 0x41);
}

TEST_CASE("what the chip or the bus cannot do is refused, with the field at fault") {
  struct Case {
    Configure configure;
    uint16_t field;
  };
  const Case cases[] = {
      {wanted(static_cast<Mode>(9), 3, 3), 1}, {wanted(Mode::pairs, 16, 3), 2},
      {wanted(Mode::pairs, 3, 16), 3},         {wanted(Mode::pairs, 3, 3, 4), 4},
      {wanted(Mode::pairs, 0, 3), 2},          {wanted(Mode::pairs, 2, 2), 3},
      {wanted(Mode::shunts, 2, 3), 2},
  };
  for (const Case& one : cases) {
    SensorPlan plan;
    uint16_t detail = 99;
    CHECK(plan_of(one.configure, &plan, &detail) == Result::bad_value);
    CHECK(detail == one.field);
  }
}
