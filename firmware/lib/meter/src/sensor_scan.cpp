#include "sensor_scan.h"

#include "ina219.h"
#include "known_chips.h"

namespace opjoule {

using protocol::ChipKind;
using protocol::Result;

namespace {

// 0 where nothing answers or the read fails.
uint16_t read16(BusAccess transfer, uint8_t address, uint8_t reg) {
  const BusResult read = transfer(read_register(address, reg));
  return read.ok ? read.value16() : 0;
}

// INA219 has no ID register: it is known by its configuration after a reset (SBOS448G, 8.6.2.1).
bool is_ina219(BusAccess transfer, uint8_t address) {
  const BusTransfer reset = write_register(address, ina219::kConfiguration, ina219::kReset);
  if (!transfer(reset).ok) return false;
  return read16(transfer, address, ina219::kConfiguration) == ina219::kConfigurationDefault;
}

ChipKind chip_at(BusAccess transfer, uint8_t address) {
#define OPJOULE_IS_IT(kind, maker_register, maker, chip_register, chip, counts, plan) \
  if (read16(transfer, address, maker_register) == (maker) &&                         \
      (read16(transfer, address, chip_register) & (counts)) == (chip)) {              \
    return ChipKind::kind;                                                            \
  }
  OPJOULE_KNOWN_CHIPS(OPJOULE_IS_IT)
#undef OPJOULE_IS_IT
  return is_ina219(transfer, address) ? ChipKind::ina219 : ChipKind::none;
}

}  // namespace

uint8_t scan_sensors(BusAccess transfer, FoundSensor* found, uint8_t capacity) {
  uint8_t count = 0;
  for (uint8_t address = 0x40; address <= 0x4F && count < capacity; ++address) {
    if (!transfer(read_register(address, 0)).ok) continue;
    found[count++] = {address, chip_at(transfer, address)};
  }
  return count;
}

Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted, SensorPlan* plan,
                   uint16_t* detail) {
  *detail = 0;
  switch (sensor.chip) {
    case ChipKind::ina219:
      return ina219::plan(wanted, sensor.address, plan, detail);
#define OPJOULE_PLAN(kind, maker_register, maker, chip_register, chip, counts, plan_of) \
  case ChipKind::kind:                                                                  \
    return plan_of(wanted, sensor.address, plan, detail);
      OPJOULE_KNOWN_CHIPS(OPJOULE_PLAN)
#undef OPJOULE_PLAN
    default:
      return Result::no_sensor;
  }
}

}  // namespace opjoule
