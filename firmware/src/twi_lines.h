// SDA (PC4) and SCL (PC5) as pins of the port, while the TWI is off. Part of twi.cpp.
#ifndef OPJOULE_SRC_TWI_LINES_H_
#define OPJOULE_SRC_TWI_LINES_H_

namespace opjoule {
namespace twi {

// Clocks a device that holds SDA low free (bus_clear.h). True: SDA was held.
bool clear_lines();

}  // namespace twi
}  // namespace opjoule

#endif  // OPJOULE_SRC_TWI_LINES_H_
