#include "sync_line.h"

#include <Arduino.h>

#include "arduino_clock.h"
#include "messages.h"

// Any pin with an interrupt; on an Uno that is 2 or 3.
#ifndef OPJOULE_SYNC_PIN
#define OPJOULE_SYNC_PIN 2
#endif
#ifndef IRAM_ATTR
#define IRAM_ATTR  // ESP32: code that an interrupt may run while the flash is busy
#endif

namespace opjoule {
namespace sync_line {

namespace {

EdgeLog* log;
FaultCounters* counters;
uint8_t last_level;

void IRAM_ATTR on_edge() {
  const uint32_t ticks = arduino_now_ticks();
  const uint8_t level = digitalRead(OPJOULE_SYNC_PIN) == HIGH ? 1 : 0;
  bool all_kept = true;
  if (level == last_level) {
    // The line changed twice before the interrupt ran: the time of the first edge is unknown.
    log->skip();
    all_kept = false;
  }
  last_level = level;
  all_kept &= log->push(ticks, level);
  if (!all_kept) counters->count(protocol::Fault::edge_missed, kNoSensor, ticks);
}

}  // namespace

void begin(EdgeLog& edges, FaultCounters& faults) {
  log = &edges;
  counters = &faults;
  pinMode(OPJOULE_SYNC_PIN, INPUT);
  last_level = digitalRead(OPJOULE_SYNC_PIN) == HIGH ? 1 : 0;
  attachInterrupt(digitalPinToInterrupt(OPJOULE_SYNC_PIN), on_edge, CHANGE);
}

}  // namespace sync_line
}  // namespace opjoule
