#include "sync_line.h"

#include <Arduino.h>

#include "arduino_clock.h"
#include "edge_gate.h"
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
EdgeGate gate;
uint8_t last_level;
uint8_t last_turn;

uint8_t turn_now() { return static_cast<uint8_t>(arduino_now_ticks() >> 16); }

void IRAM_ATTR on_edge();
void listen() {
  last_level = digitalRead(OPJOULE_SYNC_PIN) == HIGH ? 1 : 0;
  attachInterrupt(digitalPinToInterrupt(OPJOULE_SYNC_PIN), on_edge, CHANGE);
}

void IRAM_ATTR on_edge() {
  if (gate.closed()) return;
  const uint32_t ticks = arduino_now_ticks();
  if (!gate.admit(static_cast<uint16_t>(ticks))) {
    log->skip();
    counters->count(protocol::Fault::sync_oscillates, kNoSensor, ticks);
#ifdef __AVR__
    // Other cores may not do this in an interrupt, and have time to spare.
    detachInterrupt(digitalPinToInterrupt(OPJOULE_SYNC_PIN));
#endif
    return;
  }
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
  pinMode(OPJOULE_SYNC_PIN, INPUT_PULLUP);
  delayMicroseconds(100);
  listen();
}

void watch() {
  const uint8_t turn = turn_now();
  if (turn == last_turn) return;
  last_turn = turn;
  noInterrupts();
  const bool opened = gate.turn();
  interrupts();
  if (!opened) return;
#ifdef __AVR__
  listen();
#else
  last_level = digitalRead(OPJOULE_SYNC_PIN) == HIGH ? 1 : 0;
#endif
}

}  // namespace sync_line
}  // namespace opjoule
