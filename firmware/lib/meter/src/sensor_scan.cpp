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

ChipKind with_ids_of_ina228(BusAccess transfer, uint8_t address) {
  if (read16(transfer, address, ina228::kManufacturerId) != ina228::kManufacturer) {
    return ChipKind::none;
  }
  switch (read16(transfer, address, ina228::kDeviceId) & ina228::kDeviceMask) {
    case ina228::kDevice:
      return ChipKind::ina228;
    case ina228::kDeviceIna237:
      return ChipKind::ina237;
    case ina228::kDeviceIna238:
      return ChipKind::ina238;
    default:
      return ChipKind::none;
  }
}

ChipKind with_ids_of_ina226(BusAccess transfer, uint8_t address) {
  const uint16_t manufacturer = read16(transfer, address, ina226::kManufacturerId);
  const uint16_t die = read16(transfer, address, ina226::kDieId);
  if (manufacturer == ina226::kManufacturerSilergy && die == ina226::kDieSq52201) {
    return ChipKind::sq52201;
  }
  if (manufacturer != ina226::kManufacturer) return ChipKind::none;
  if ((die & ina226::kDieMask) == ina226::kDie) return ChipKind::ina226;
  return (die & ina226::kDieMask) == ina226::kDieIna260 ? ChipKind::ina260 : ChipKind::none;
}

ChipKind chip_at(BusAccess transfer, uint8_t address) {
  ChipKind chip = with_ids_of_ina228(transfer, address);
  if (chip == ChipKind::none) chip = with_ids_of_ina226(transfer, address);
  if (chip != ChipKind::none) return chip;
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
    case ChipKind::sq52201:
      return ina226::plan(wanted, sensor.address, plan, detail);
    case ChipKind::ina260:
      return ina226::plan(wanted, sensor.address, plan, detail, ina226::kKeptIna260);
    case ChipKind::ina237:
    case ChipKind::ina238:
      return ina228::plan_16_bit(wanted, sensor.address, plan, detail);
    case ChipKind::ina228:
      return ina228::plan(wanted, sensor.address, plan, detail);
    default:
      return Result::no_sensor;
  }
}

}  // namespace opjoule
