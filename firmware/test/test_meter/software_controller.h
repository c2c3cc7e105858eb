// A meter whose controller and sensor are all software: the tests and the fuzzer drive it.
#ifndef OPJOULE_TEST_SOFTWARE_CONTROLLER_H_
#define OPJOULE_TEST_SOFTWARE_CONTROLLER_H_

#include "../test_sampling/ina219_on_bus.h"
#include "meter.h"
#include "sampler.h"

namespace opjoule {

inline Ina219OnBus* scanned = nullptr;

// A bus with one chip, at 0x40.
inline BusResult scan_transfer(const BusTransfer& transfer) {
  scanned->answers = transfer.address == 0x40;
  const BusResult result = scanned->transfer(transfer, true, scanned->now_ticks);
  scanned->answers = true;
  return result;
}

// Time passes only with bus transfers and with waiting.
class SoftwareController final : public Controller {
 public:
  explicit SoftwareController(Sampler& sampler) : sampler_(sampler) {}

  uint32_t now_ticks() override { return static_cast<uint32_t>(chip.now_ticks += 2); }
  uint8_t turn() override {
    return static_cast<uint8_t>(static_cast<uint32_t>(chip.now_ticks) >> 16);
  }
  uint32_t tick_wraps() override { return 0; }
  void wait_until(uint32_t ticks) override {
    const int32_t left = ticks_between(now_ticks(), ticks);
    if (left > 0) chip.now_ticks += left;
  }
  void start_transmit() override { transmitting = true; }
  bool line_idle() override { return line_is_idle; }
  uint8_t find_sensors(FoundSensor* found, uint8_t capacity) override {
    scanned = &chip;
    return scan_sensors(scan_transfer, found, capacity);
  }
  protocol::Result plan_sensor(const FoundSensor& sensor, const protocol::Configure& wanted,
                               SensorPlan* plan, uint16_t* detail) override {
    return opjoule::plan_sensor(sensor, wanted, plan, detail);
  }
  bool start_sampling() override { return sampler_.start(now_ticks()); }
  void finish_sampling() override {}
  uint16_t stack_free_bytes() override { return 321; }

  void sample_once() {
    if (!sampler_.running()) return;
    const double start =
        at_once_ ? chip.now_ticks
                 : chip.now_ticks + static_cast<int32_t>(sampler_.next_start_ticks() -
                                                         static_cast<uint32_t>(chip.now_ticks));
    const BusResult result =
        chip.transfer(sampler_.next_transfer(), sampler_.next_sets_pointer(), start);
    at_once_ = sampler_.advance(result);
    sampler_.digest(result);
  }

  Ina219OnBus chip;
  bool transmitting = false;
  bool line_is_idle = true;

 private:
  Sampler& sampler_;
  bool at_once_ = false;
};

}  // namespace opjoule

#endif  // OPJOULE_TEST_SOFTWARE_CONTROLLER_H_
