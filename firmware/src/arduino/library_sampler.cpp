#include "library_sampler.h"

#include <Adafruit_INA219.h>
#include <Arduino.h>
#include <Wire.h>

#include "arduino_clock.h"
#include "configure_fields.h"
#include "ina219.h"
#include "wire_bus.h"

namespace opjoule {

using protocol::ChipKind;
using protocol::Fault;
using protocol::Flag;
using protocol::Mode;
using protocol::Result;

namespace {

constexpr uint32_t kBusHz = 400000;
constexpr uint32_t kRetryTicks = 5000 * kTicksPerUs;  // after a sensor did not answer
constexpr uint8_t kWideRange = 3;                     // PGA code: 320 mV, 32 V
constexpr uint8_t kNarrowRange = 0;                   // 40 mV, 16 V

bool is_12_bit(uint8_t adc_code) { return adc_code == 3 || adc_code == 8; }

bool due(uint32_t since_ticks) {
  return ticks_between(since_ticks, arduino_now_ticks()) >= static_cast<int32_t>(kReadAgainTicks);
}

// The library gives volts; these are whole numbers of the chip's steps.
int16_t shunt_code(float shunt_mv) { return static_cast<int16_t>(lroundf(shunt_mv * 100)); }
uint16_t bus_code(float bus_v) { return static_cast<uint16_t>(lroundf(bus_v * 250)); }

}  // namespace

Result plan_by_library(const FoundSensor& sensor, const protocol::Configure& wanted,
                       SensorPlan* plan, uint16_t* detail) {
  *detail = 0;
  if (sensor.chip != ChipKind::ina219) return Result::no_sensor;
  const Result result = ina219::plan(wanted, sensor.address, plan, detail);
  if (result != Result::ok) return result;
  *detail = configure_field::kMode;
  if (plan->mode != Mode::pairs && plan->mode != Mode::off) return Result::bad_value;
  *detail = configure_field::kShuntAdc;
  if (!is_12_bit(wanted.shunt_adc)) return Result::bad_value;
  *detail = configure_field::kBusAdc;
  if (!is_12_bit(wanted.bus_adc)) return Result::bad_value;
  *detail = configure_field::kRange;
  if (wanted.range != kWideRange && wanted.range != kNarrowRange) return Result::bad_value;
  if (wanted.range == kNarrowRange) plan->bus_full_scale = ina219::kBusFullScale16V;
  *detail = 0;
  return Result::ok;
}

uint8_t LibrarySampler::find_sensors(FoundSensor* found, uint8_t capacity) {
  if (begin_wire(kBusHz)) faults_.count(Fault::i2c_held, kNoSensor, arduino_now_ticks());
  const uint8_t count = scan_sensors(wire_transfer, found, capacity);
  for (uint8_t sensor = 0; sensor < count && sensor < kMaxSensors; ++sensor) {
    if (found[sensor].chip != ChipKind::ina219) continue;
    chips_[sensor] = new Adafruit_INA219(found[sensor].address);
    chips_[sensor]->begin();
  }
  Wire.setClock(kBusHz);  // begin() has set it back to the framework's 100 kHz
  return count;
}

bool LibrarySampler::start() {
  count_active();
  if (active_count_ != 1) return false;
  queue_.clear();
  sensor_ = 0;
  while (plans_[sensor_].mode == Mode::off) ++sensor_;
  set_range();
  // What was converted before this moment does not count.
  shunt_ticks_ = bus_ticks_ = arduino_now_ticks();
  shunt_is_read_ = false;
  flags_ = flag_bit(Flag::gap_before);
  running_ = true;
  return true;
}

void LibrarySampler::run() {
  if (!running_) return;
  if (!shunt_is_read_) {
    if (due(shunt_ticks_)) shunt_is_read_ = read_shunt();
  } else if (due(bus_ticks_)) {
    shunt_is_read_ = false;
    read_bus();
  }
}

// Writes the chip's configuration, which begins a new pair of conversions.
void LibrarySampler::set_range() {
  const bool narrow = (plans_[sensor_].sample_mode >> 11 & 3) == kNarrowRange;
  if (narrow) {
    chips_[sensor_]->setCalibration_16V_400mA();
  } else {
    chips_[sensor_]->setCalibration_32V_2A();
  }
}

bool LibrarySampler::read_shunt() {
  const uint32_t begin_ticks = arduino_now_ticks();
  const int16_t code = shunt_code(chips_[sensor_]->getShuntVoltage_mV());
  shunt_ticks_ = arduino_now_ticks();
  if (!answered()) return false;
  // The chip took the value from its register about in the middle of the call. By then the shunt's
  // conversion had ended anywhere up to a pair's time ago; the bus conversion, which ends the pair,
  // on average just then.
  sample_.end_ticks = begin_ticks + (shunt_ticks_ - begin_ticks) / 2;
  sample_.shunt = code;
  sample_.sensor = sensor_;
  sample_.flags = flags_;
  flags_ = 0;
  return true;
}

void LibrarySampler::read_bus() {
  sample_.bus = bus_code(chips_[sensor_]->getBusVoltage_V());
  bus_ticks_ = arduino_now_ticks();
  if (!answered()) return;
  const int32_t full_scale = plans_[sensor_].shunt_full_scale;
  if (sample_.shunt >= full_scale || sample_.shunt <= -full_scale ||
      sample_.bus >= plans_[sensor_].bus_full_scale) {
    sample_.flags |= flag_bit(Flag::overflow);
    faults_.count(Fault::shunt_overflow, sensor_, sample_.end_ticks);
  }
  if (!queue_.push(sample_)) {
    faults_.count(Fault::transmit_full, sensor_, sample_.end_ticks);
  }
}

// Whether the library's last read went well; if not, the chip is set up again after a pause.
bool LibrarySampler::answered() {
  if (chips_[sensor_]->success()) return true;
  faults_.count(Fault::i2c_nack, sensor_, shunt_ticks_);
  set_range();
  shunt_ticks_ = bus_ticks_ = arduino_now_ticks() + kRetryTicks;
  flags_ = flag_bit(Flag::missed_before);
  return false;
}

}  // namespace opjoule
