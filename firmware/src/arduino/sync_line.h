// Edges of the sync line by the framework's pin interrupt. An edge is stamped when its interrupt
// runs: late by the latency of the interrupt (docs/reference/firmware.md).
#ifndef OPJOULE_SRC_ARDUINO_SYNC_LINE_H_
#define OPJOULE_SRC_ARDUINO_SYNC_LINE_H_

#include "edge_log.h"
#include "fault_counters.h"

namespace opjoule {
namespace sync_line {

// Edges go into `edges` from now on; both must exist for ever. To be called once.
void begin(EdgeLog& edges, FaultCounters& faults);

// To be called from the main loop, at least once in a turn of 32.8 ms: looks at the line again
// after the pause that an oscillating one brings (edge_gate.h).
void watch();

}  // namespace sync_line
}  // namespace opjoule

#endif  // OPJOULE_SRC_ARDUINO_SYNC_LINE_H_
