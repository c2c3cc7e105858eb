// The meter on the Arduino framework, for any controller that has it and the Adafruit INA219
// library.
#include <Arduino.h>

#include "arduino_clock.h"
#include "library_sampler.h"
#include "meter.h"
#include "serial_line.h"
#include "sync_line.h"

#ifdef __AVR__
#include <avr/wdt.h>

#include "reset.h"
#endif

namespace opjoule {
namespace {

FaultCounters faults;
TransmitRing ring;
EdgeLog edges;
LibrarySampler sampler(faults);
SerialLine line(ring);
WrapCounter wrap_counter;

class ArduinoController final : public Controller {
 public:
  uint32_t now_ticks() override { return arduino_now_ticks(); }
  uint8_t turn() override { return static_cast<uint8_t>(arduino_now_ticks() >> 16); }
  uint32_t tick_wraps() override { return wrap_counter.wraps(); }
  void wait_until(uint32_t ticks) override {
    while (ticks_between(arduino_now_ticks(), ticks) > 0) {
    }
  }
  void start_transmit() override { line.transmit(); }
  bool line_idle() override { return line.idle(); }
  uint8_t find_sensors(FoundSensor* found, uint8_t capacity) override {
    return sampler.find_sensors(found, capacity);
  }
  protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                               SensorPlan* plan, uint16_t* detail) override {
    return plan_by_library(sensor, wanted, plan, detail);
  }
  bool start_sampling() override { return sampler.start(); }
  void finish_sampling() override {}
#ifdef __AVR__
  uint16_t stack_free_bytes() override { return reset::stack_free_bytes(); }
#else
  uint16_t stack_free_bytes() override { return 0xFFFF; }  // unknown
#endif
};

constexpr protocol::ControllerKind kKind =
#if defined(__AVR__)
    protocol::ControllerKind::avr;
#elif defined(ARDUINO_ARCH_ESP32)
    protocol::ControllerKind::esp32;
#elif defined(ARDUINO_ARCH_RP2040) || defined(ARDUINO_ARCH_MBED_RP2040)
    protocol::ControllerKind::rp2040;
#elif defined(ARDUINO_ARCH_SAMD)
    protocol::ControllerKind::samd;
#else
    protocol::ControllerKind::other;
#endif

ArduinoController controller;
ControllerFacts facts = {static_cast<uint8_t>(kKind), 0, {}};
Meter meter(controller, facts, ring, sampler, edges, faults);

}  // namespace
}  // namespace opjoule

void setup() {
  using namespace opjoule;
  line.begin();
#ifdef __AVR__
  facts.reset_cause = reset::cause();
  reset::start_watchdog();
#endif
  sync_line::begin(edges, faults);
  meter.begin();
}

void loop() {
  using namespace opjoule;
#ifdef __AVR__
  wdt_reset();
#endif
  wrap_counter.wraps();
  sync_line::watch();
  sampler.run();
  uint8_t byte;
  uint32_t ticks = 0;
  while (meter.ready_to_receive() && line.receive(&byte, &ticks)) meter.receive(byte, ticks);
  meter.run();
  line.transmit();
}
