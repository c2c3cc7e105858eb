// An INA219 on a 400 kHz bus, in ticks: just enough of the chip for the sampler's tests. It counts
// what the sampler must never do: leave a result unread, or read one twice.
#ifndef OPJOULE_TEST_INA219_ON_BUS_H_
#define OPJOULE_TEST_INA219_ON_BUS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "bus_transfer.h"
#include "ina219.h"

namespace opjoule {

class Ina219OnBus {
 public:
  explicit Ina219OnBus(double clock_error = 0) : stretch_(1 + clock_error) {}

  // What the data sheet leaves open.
  double start_delay_ticks = 0;      // from the write of a mode to its first conversion
  bool finishes_conversion = false;  // before it changes its mode

  double now_ticks = 1000;    // true time
  double overhead_ticks = 3;  // of the controller, each bus event
  bool answers = true;
  std::vector<double> shunt_ends;    // of the conversion that each shunt read returned
  std::vector<int16_t> shunt_codes;  // and its value
  long shunt_conversions = 0;
  long missed = 0;  // results overwritten unread
  long repeated_reads = 0;
  uint16_t bus_code = 1250;
  int16_t shunt_step = 1;
  int16_t shunt_most = 32000;  // codes are cut off here, as at the end of a range
  long restarts = 0;
  int16_t shunt_of(long number) const {
    return std::min<int16_t>(shunt_most, static_cast<int16_t>(100 + number % 1000 * shunt_step));
  }

  // Carries out one transfer at `start_ticks` or now, whichever is later.
  BusResult transfer(const BusTransfer& wanted, bool set_pointer, double start_ticks) {
    if (start_ticks > now_ticks) now_ticks = start_ticks;
    BusResult result = {answers, protocol::Fault::i2c_nack, {}, 0, {}};
    if (!answers) {
      event(10);
      result.end_ticks = static_cast<uint32_t>(now_ticks);
      return result;
    }
    event(1);
    if (wanted.reads == 0) {
      for (int i = 0; i < 4; ++i) event(9);
      advance();
      write(wanted.registers[0], wanted.value);
      result.end_ticks = static_cast<uint32_t>(now_ticks);
      event(1);
      pointer_ = wanted.registers[0];
      return result;
    }
    for (uint8_t i = 0; i < wanted.reads; ++i) {
      if (i != 0 || set_pointer) {
        event(9);
        event(9);
        event(1);
        pointer_ = wanted.registers[i];
      }
      event(9);
      advance();
      result.looks[i] = static_cast<uint16_t>(static_cast<uint32_t>(now_ticks));
      const uint32_t value = read(pointer_);
      result.bytes[2 * i] = static_cast<uint8_t>(value >> 8);
      result.bytes[2 * i + 1] = static_cast<uint8_t>(value);
      event(18);
      event(1);
    }
    result.end_ticks = static_cast<uint32_t>(now_ticks);
    return result;
  }

  void lose_supply() {
    ready_ = false;
    begin(ina219::kConfigurationDefault, now_ticks);
  }

 private:
  void event(int bits) { now_ticks += bits * 5.0 + overhead_ticks; }

  // A cycle is a shunt conversion, a bus conversion, or one after the other.
  void write(uint8_t reg, uint16_t value) {
    if (reg != ina219::kConfiguration) return;
    if (value & ina219::kReset) value = ina219::kConfigurationDefault;
    ready_ = false;
    ++restarts;
    if (finishes_conversion && now_ticks > cycle_start_) {
      next_ = value;
      next_from_ = now_ticks + start_delay_ticks;
    } else {
      begin(value, now_ticks + start_delay_ticks);
    }
  }

  // What was converted before anyone asked is nobody's loss; later results stay in their register.
  void begin(uint16_t value, double at_ticks) {
    next_ = 0;
    configuration_ = value;
    cycle_start_ = at_ticks;
    shunt_done_ = false;
  }

  double cycle_ticks(bool with_bus) const {
    double ticks = 0;
    if (configuration_ & 1) ticks += ina219::conversion_ticks((configuration_ >> 3) & 15);
    if ((configuration_ & 2) && with_bus) {
      ticks += ina219::conversion_ticks((configuration_ >> 7) & 15);
    }
    return ticks * stretch_;
  }

  void advance() {
    for (;;) {
      const double shunt_end = cycle_start_ + cycle_ticks(false);
      const double end = cycle_start_ + cycle_ticks(true);
      if ((configuration_ & 1) && !shunt_done_ && now_ticks >= shunt_end) {
        shunt_done_ = true;
        ++shunt_conversions;
        missed += shunt_fresh_ && !shunt_ends.empty();
        shunt_fresh_ = true;
        shunt_end_ = end;
      }
      if (now_ticks < end) return;
      ready_ = true;
      cycle_start_ = end;
      shunt_done_ = false;
      if (next_ != 0) begin(next_, std::max(end, next_from_));
    }
  }

  uint32_t read(uint8_t reg) {
    switch (reg) {
      case ina219::kConfiguration:
        return next_ != 0 ? next_ : configuration_;
      case ina219::kShuntVoltage:
        if (!shunt_fresh_) ++repeated_reads;
        shunt_fresh_ = false;
        shunt_ends.push_back(shunt_end_);
        shunt_codes.push_back(shunt_of(shunt_conversions));
        return static_cast<uint16_t>(shunt_of(shunt_conversions));
      case ina219::kBusVoltage:
        return (static_cast<uint32_t>(bus_code) << 3) | (ready_ ? ina219::kConversionReady : 0);
      case ina219::kPower:
        ready_ = false;
        return 0;
      default:
        return 0xFFFF;
    }
  }

  double stretch_;
  double cycle_start_ = 0;
  double shunt_end_ = 0;
  uint16_t configuration_ = ina219::kConfigurationDefault;
  double next_from_ = 0;
  uint16_t next_ = 0;  // the mode that waits for the end of a conversion; 0: none
  uint8_t pointer_ = 0;
  bool shunt_done_ = false;
  bool shunt_fresh_ = false;
  bool ready_ = false;
};

}  // namespace opjoule

#endif  // OPJOULE_TEST_INA219_ON_BUS_H_
