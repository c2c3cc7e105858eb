// The one instance of each part, shared by the main loop and the interrupts. Defined in main.cpp.
#ifndef OPJOULE_SRC_INSTANCES_H_
#define OPJOULE_SRC_INSTANCES_H_

#include "edge_log.h"
#include "fault_counters.h"
#include "sampler.h"
#include "transmit_ring.h"

namespace opjoule {

extern FaultCounters g_faults;
extern TransmitRing g_transmit_ring;
extern EdgeLog g_edges;
extern Sampler g_sampler;

}  // namespace opjoule

#endif  // OPJOULE_SRC_INSTANCES_H_
