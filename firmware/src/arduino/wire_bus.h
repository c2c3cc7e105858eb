// Register access through the framework's Wire, for what the sensor library does not tell: which
// chip it is.
#ifndef OPJOULE_SRC_ARDUINO_WIRE_BUS_H_
#define OPJOULE_SRC_ARDUINO_WIRE_BUS_H_

#include "bus_transfer.h"

namespace opjoule {

// Starts the bus at `hz`, after freeing it from a device that holds SDA low (bus_clear.h). True:
// one did.
bool begin_wire(uint32_t hz);

// Writes or reads one register and waits for it; without the times of a BusResult.
BusResult wire_transfer(const BusTransfer& transfer);

}  // namespace opjoule

#endif  // OPJOULE_SRC_ARDUINO_WIRE_BUS_H_
