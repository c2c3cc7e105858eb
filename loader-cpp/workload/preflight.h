// Checks before a phase starts: is this the database into which the workload was loaded, and where
// did an interrupted load stop?
//
// Thread safety: none; before the phase's threads start.
#pragma once

#include <cstdint>

#include "loader/database.h"
#include "loader/status.h"
#include "workload/settings.h"

namespace opjoule {

// Reads a key or a few: kMismatch where none of them is there.
Status check_loaded(Client& client, const WorkloadSettings& settings);
// kMismatch where the first key that the workload inserts is there already.
Status check_not_inserted(Client& client, const WorkloadSettings& settings);

// Where a load goes on.
struct ResumePoint {
  uint64_t first_number = 0;  // every key number below is in the database
  uint64_t check_end = 0;  // from first_number to here each key is looked for before it is inserted
};

// Finds the end of what is there by bisection. The keys around it are to be checked one by one,
// because threads do not end at the same number; all keys are, where the `found` rows are not
// just those. kMismatch where the database holds rows, but not this workload's.
Status find_resume_point(Client& client, const WorkloadSettings& settings, uint64_t found,
                         ResumePoint* out);

}  // namespace opjoule
