// Whether an engine takes its settings, found by opening a new, empty database with them.
#pragma once

#include "loader/database.h"
#include "loader/status.h"

namespace opjoule {

// Opens and closes an empty database in a folder of its own under the temporary directory, and
// removes it. Engines without files of their own (servers, null) are passed over. The failure is
// the engine's own, kBadInput for a setting that it does not take; kIo: no temporary folder.
Status trial_open(const Engine& engine, const Properties& properties, uint16_t field_count,
                  int threads);

}  // namespace opjoule
