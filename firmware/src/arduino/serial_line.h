// The line to the host: the framework's Serial, which is a UART or USB.
#ifndef OPJOULE_SRC_ARDUINO_SERIAL_LINE_H_
#define OPJOULE_SRC_ARDUINO_SERIAL_LINE_H_

#include <stdint.h>

#include "transmit_ring.h"

namespace opjoule {

class SerialLine {
 public:
  explicit SerialLine(TransmitRing& ring) : ring_(ring) {}

  void begin();

  // Passes on what the ring holds, as far as the framework takes it without waiting.
  void transmit();

  // The ring is empty and the last byte has left the framework's buffer.
  bool idle();

  // A byte from the host, and when it was taken from the framework's buffer: at most one turn of
  // the main loop after it arrived. False: there is none.
  bool receive(uint8_t* byte, uint32_t* ticks);

 private:
  int room();

  TransmitRing& ring_;
  int most_room_ = 0;  // there ever was: that of an empty buffer
};

}  // namespace opjoule

#endif  // OPJOULE_SRC_ARDUINO_SERIAL_LINE_H_
