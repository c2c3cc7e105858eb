#include "serial_line.h"

#include <Arduino.h>

#include "arduino_clock.h"
#include "messages.h"

// Controllers whose USB port has another name set it in platformio.ini.
#ifndef OPJOULE_SERIAL
#define OPJOULE_SERIAL Serial
#endif

namespace opjoule {

namespace {
constexpr int kMostAtOnce = 8;
}

void SerialLine::begin() {
  OPJOULE_SERIAL.begin(protocol::kBaud);
  room();
}

void SerialLine::transmit() {
  // A few at a time: a whole frame at once would delay a read for too long. A core that does not
  // say how much room it has gets its bytes one by one, even if that means waiting.
  int left = most_room_ == 0 ? 1 : min(room(), kMostAtOnce);
  for (; left > 0 && !ring_.empty(); --left) OPJOULE_SERIAL.write(ring_.pop());
}

bool SerialLine::idle() {
  transmit();
  if (!ring_.empty() || room() < most_room_) return false;
  OPJOULE_SERIAL.flush();  // the byte or two that are still in the hardware
  return true;
}

bool SerialLine::receive(uint8_t* byte, uint32_t* ticks) {
  if (OPJOULE_SERIAL.available() <= 0) return false;
  *byte = static_cast<uint8_t>(OPJOULE_SERIAL.read());
  *ticks = arduino_now_ticks();
  return true;
}

int SerialLine::room() {
  const int room = OPJOULE_SERIAL.availableForWrite();
  if (room > most_room_) most_room_ = room;
  return room;
}

}  // namespace opjoule
