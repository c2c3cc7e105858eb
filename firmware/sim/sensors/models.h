// The sensor chips that the rig has, a row each.
#pragma once

#include <memory>
#include <string>

#include "sensors/imperfections.h"
#include "sensors/power_sensor.h"
#include "signal/supply.h"

namespace opjoule::rig {

/// "ina219, ina226, ...": every model that `make_sensor` knows.
std::string model_names();

/// The chip of this model; nothing where there is none. The supply must outlive it.
std::unique_ptr<PowerSensor> make_sensor(const std::string& model, const Supply& supply,
                                         const Imperfections& imperfections, std::uint64_t seed);

bool is_model(const std::string& model);

}  // namespace opjoule::rig
