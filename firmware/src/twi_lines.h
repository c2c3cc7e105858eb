// SDA (PC4) and SCL (PC5) as pins of the port, while the TWI is off. Part of twi.cpp.
#ifndef OPJOULE_SRC_TWI_LINES_H_
#define OPJOULE_SRC_TWI_LINES_H_

namespace opjoule {
namespace twi {

// Frees SDA by clocks if a device holds it low (bus_clear.h). True: it did.
bool clear_lines();

}  // namespace twi
}  // namespace opjoule

#endif  // OPJOULE_SRC_TWI_LINES_H_
