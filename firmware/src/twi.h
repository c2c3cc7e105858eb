// TWI of the ATmega328P (data sheet DS40002061B, chapter 21) as I2C master at 400 kHz, byte by byte
// in its interrupt. SDA is PC4 (Arduino A4), SCL is PC5 (A5).
#ifndef OPJOULE_SRC_TWI_H_
#define OPJOULE_SRC_TWI_H_

#include "bus_transfer.h"

namespace opjoule {
namespace twi {

void begin();

// One transfer, waited for. Main loop, sampler stopped.
BusResult transfer(const BusTransfer& transfer);

// Carries out the sampler's transfers until it stops running. Main loop.
void start_sampling();
// Waits until the transfer under way has ended. Main loop, sampler stopped.
void finish_sampling();

// PD2 (INT0, Arduino D2) takes the sensors' ALERT line, open drain: an INA226 or INA228 pulls it
// low when a conversion has ended. It may be left open.

// Frees a bus that hangs. To be called often from the main loop.
void watch();

}  // namespace twi
}  // namespace opjoule

#endif  // OPJOULE_SRC_TWI_H_
