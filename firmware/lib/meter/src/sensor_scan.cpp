#include "sensor_scan.h"

#include "ina219.h"
#include "ina226.h"
#include "ina228.h"

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
  if (read16(transfer, address, ina228::kManufacturerId) == ina228::kManufacturer &&
      (read16(transfer, address, ina228::kDeviceId) & ina228::kDeviceMask) == ina228::kDevice) {
    return ChipKind::ina228;
  }
  if (read16(transfer, address, ina226::kManufacturerId) == ina226::kManufacturer &&
      read16(transfer, address, ina226::kDieId) == ina226::kDie) {
    return ChipKind::ina226;
  }
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
    case ChipKind::ina226:
      return ina226::plan(wanted, sensor.address, plan, detail);
    case ChipKind::ina228:
      return ina228::plan(wanted, sensor.address, plan, detail);
    default:
      return Result::no_sensor;
  }
}

}  // namespace opjoule
