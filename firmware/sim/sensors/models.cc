#include "sensors/models.h"

#include <functional>
#include <utility>
#include <vector>

#include "sensors/ina219.h"
#include "sensors/ina226.h"
#include "sensors/ina228.h"

namespace opjoule::rig {
namespace {

using Maker =
    std::function<std::unique_ptr<PowerSensor>(const Supply&, const Imperfections&, std::uint64_t)>;

Maker like_ina226(const Ina226Variant& variant) {
  return [variant](const Supply& supply, const Imperfections& imperfections, std::uint64_t seed) {
    return std::make_unique<Ina226>(supply, imperfections, seed, variant);
  };
}

Maker like_ina228(unsigned number) {
  return [number](const Supply& supply, const Imperfections& imperfections, std::uint64_t seed) {
    return std::make_unique<Ina228>(supply, imperfections, seed, number);
  };
}

std::unique_ptr<PowerSensor> ina219(const Supply& supply, const Imperfections& imperfections,
                                    std::uint64_t seed) {
  return std::make_unique<Ina219>(supply, imperfections, seed);
}

/// Name -> maker. Of a variant: model, ids, configuration at power-on, register of the first id,
/// shunt and bus codes, bits below a code, whether it has a second range, its own shunt.
const std::vector<std::pair<std::string, Maker>>& models() {
  static const std::vector<std::pair<std::string, Maker>> rows = {
      {"ina219", ina219},
      {"ina226", like_ina226({})},
      {"ina228", like_ina228(228)},
      {"ina237", like_ina228(237)},
      {"ina238", like_ina228(238)},
      // Silergy's, by the ids that modules with it answer (meshtastic/firmware, pull request
      // 10247).
      {"sq52201", like_ina226({"SQ52201", 0x190F, 0x0000})},
      // TI SBOS656C, 8.6.
      {"ina260", like_ina226({"INA260",
                              0x5449,
                              0x2270,
                              0x6127,
                              0xFE,
                              {2.5e-6, -32768, 32767},
                              {1.25e-3, 0, 32767},
                              0,
                              false,
                              0.002})},
      // TI SBOS844C: tables 7-2 and 7-4, 6.5, 8.1.1.
      {"ina234", like_ina226({"INA234",
                              0x5449,
                              0xA480,
                              0x4127,
                              0x3E,
                              {40e-6, -2048, 2047},
                              {25.6e-3, 0, 2047},
                              4,
                              true})},
  };
  return rows;
}

const Maker* maker_of(const std::string& model) {
  for (const auto& [name, maker] : models())
    if (name == model) return &maker;
  return nullptr;
}

}  // namespace

std::string model_names() {
  std::string names;
  for (const auto& row : models()) names += (names.empty() ? "" : ", ") + row.first;
  return names;
}

bool is_model(const std::string& model) { return maker_of(model) != nullptr; }

std::unique_ptr<PowerSensor> make_sensor(const std::string& model, const Supply& supply,
                                         const Imperfections& imperfections, std::uint64_t seed) {
  const Maker* maker = maker_of(model);
  return maker ? (*maker)(supply, imperfections, seed) : nullptr;
}

}  // namespace opjoule::rig
