// USART0 of the ATmega328P (data sheet DS40002061B, chapter 19): 8N1, both directions by interrupt.
#ifndef OPJOULE_SRC_UART_H_
#define OPJOULE_SRC_UART_H_

#include <stdint.h>

namespace opjoule {
namespace uart {

void begin();

// Sends what the transmit ring holds; any context.
void start_transmit();

// The ring is empty and the last byte has left. Main loop.
bool idle();

// A byte from the host; `ticks` is when it arrived if it is a 0x00. False: none there. Main loop.
bool receive(uint8_t* byte, uint32_t* ticks);

}  // namespace uart
}  // namespace opjoule

#endif  // OPJOULE_SRC_UART_H_
