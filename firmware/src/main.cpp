// The meter on an ATmega328P at 16 MHz (Arduino Uno, Nano), without the Arduino framework.
#include <avr/boot.h>
#include <avr/interrupt.h>
#include <avr/wdt.h>

#include "instances.h"
#include "meter.h"
#include "reset.h"
#include "sensor_scan.h"
#include "timer.h"
#include "twi.h"
#include "uart.h"

namespace opjoule {

FaultCounters g_faults;
TransmitRing g_transmit_ring;
EdgeLog g_edges;
Sampler g_sampler(g_faults);

namespace {

class Atmega328p final : public Controller {
 public:
  uint32_t now_ticks() override { return timer::now_ticks(); }
  uint8_t turn() override { return timer::turn(); }
  uint32_t tick_wraps() override { return timer::wraps(); }
  void wait_until(uint32_t ticks) override { timer::wait_until(ticks); }
  void start_transmit() override { uart::start_transmit(); }
  bool line_idle() override { return uart::idle(); }
  uint8_t find_sensors(FoundSensor* found, uint8_t capacity) override {
    return scan_sensors(twi::transfer, found, capacity);
  }
  protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                               SensorPlan* plan, uint16_t* detail) override {
    return opjoule::plan_sensor(sensor, wanted, plan, detail);
  }
  bool start_sampling() override {
    if (!g_sampler.start(timer::now_ticks())) return false;
    twi::start_sampling();
    return true;
  }
  void finish_sampling() override { twi::finish_sampling(); }
  uint16_t stack_free_bytes() override { return reset::stack_free_bytes(); }
};

Atmega328p controller;
ControllerFacts facts;
Meter meter(controller, facts, g_transmit_ring, g_sampler, g_edges, g_faults);

void learn_facts() {
  facts.kind = static_cast<uint8_t>(protocol::ControllerKind::atmega328p);
  facts.reset_cause = reset::cause();
  // Signature row 0x0E to 0x17: lot, wafer and place of the die. In the data sheet for the 328PB
  // (DS40001906, 31.5) and found in the 328P too.
  for (uint8_t i = 0; i < sizeof(facts.device_id); ++i) {
    facts.device_id[i] = boot_signature_byte_get(0x0E + i);
  }
}

}  // namespace
}  // namespace opjoule

int main() {
  using namespace opjoule;
  learn_facts();
  timer::begin();
  uart::begin();
  sei();
  twi::begin();
  reset::start_watchdog();
  meter.begin();
  for (;;) {
    wdt_reset();
    twi::watch();
    uint8_t byte;
    uint32_t ticks = 0;
    while (meter.ready_to_receive() && uart::receive(&byte, &ticks)) meter.receive(byte, ticks);
    meter.run();
  }
}
