// The chips that answer with ids of their own, a row each: how one is known, and whose driver plans
// it. An INA219 has no ids (sensor_scan.cpp).
#ifndef OPJOULE_METER_KNOWN_CHIPS_H_
#define OPJOULE_METER_KNOWN_CHIPS_H_

#include "ina226.h"
#include "ina228.h"

// CHIP(kind in messages.toml, register of the maker's id, its value, register of the chip's id, its
// value, which bits of that count, driver). A list and no array, which would take RAM on an AVR.
#define OPJOULE_KNOWN_CHIPS(CHIP)                                                \
  /* SLYS021A, 7.6.1; SBOSA20A; SLYS025A. The low four bits are the revision. */ \
  CHIP(ina228, 0x3E, 0x5449, 0x3F, 0x2280, 0xFFF0, ina228::plan)                 \
  CHIP(ina237, 0x3E, 0x5449, 0x3F, 0x2370, 0xFFF0, ina228::plan_16_bit)          \
  CHIP(ina238, 0x3E, 0x5449, 0x3F, 0x2380, 0xFFF0, ina228::plan_16_bit)          \
  /* SBOS844C, table 7-2. */                                                     \
  CHIP(ina234, 0x3E, 0x5449, 0x3F, 0xA480, 0xFFF0, ina226::plan_12_bit)          \
  /* SBOS547A, 7.6; SBOS656C, 8.6.9. */                                          \
  CHIP(ina226, 0xFE, 0x5449, 0xFF, 0x2260, 0xFFF0, ina226::plan)                 \
  CHIP(ina260, 0xFE, 0x5449, 0xFF, 0x2270, 0xFFF0, ina226::plan_own_shunt)       \
  /* As modules with it answer (github.com/meshtastic/firmware, pull 10247). */  \
  CHIP(sq52201, 0xFE, 0x190F, 0xFF, 0x0000, 0xFFFF, ina226::plan)

#endif  // OPJOULE_METER_KNOWN_CHIPS_H_
