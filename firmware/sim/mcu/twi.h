// The two-wire interface (I2C controller) of the ATmega328P, in place of simavr's, which has no bit
// times and never clears TWINT for polled use.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "mcu/mcu.h"
#include "sensors/i2c_device.h"

namespace opjoule::rig {

/// Controller transmitter and receiver (data sheet chapter 22); no target mode, no arbitration with
/// other controllers, no clock stretching. While the interface is off, the program moves the lines
/// by port C, as open drains with pull-ups. A bit takes 16 + 2 TWBR 4^TWPS cycles; START, repeated
/// START and STOP take one bit, a byte with its acknowledge nine.
class Twi {
 public:
  /// What the bus did for a while: one bit (START, repeated START, STOP) or a byte.
  struct Action {
    std::uint64_t start_cycle, end_cycle;
    const char* name;   ///< start, address, write, read, stop
    std::uint8_t byte;  ///< what was on the bus; of start and stop no meaning
  };

  explicit Twi(Mcu& mcu);

  /// Puts a device on the bus; it must outlive this object.
  void attach(std::uint8_t address, I2cDevice& device) { devices_[address] = &device; }

  /// Takes the device at an address off the bus: it no longer acknowledges, from the next address
  /// to read from.
  void detach(std::uint8_t address) { detached_ = address; }

  /// The device at this address acknowledges nothing, until another call.
  void ignore(std::optional<std::uint8_t> address) { ignored_ = address; }

  /// A device has lost step: it holds SDA low from now on, until it has seen so many clocks. No
  /// START or STOP is possible meanwhile, and a byte with a 1 in it loses the bus.
  void hold_data(std::uint64_t clocks) { held_clocks_ = clocks; }

  /// Called at the end of each byte, which may have changed a device.
  std::function<void(std::uint64_t cycle)> on_byte;

  /// Called after each action, in order.
  std::function<void(const Action& action)> on_action;

  /// Cycles the bus was driven since start-up.
  std::uint64_t bus_cycles() const { return bus_cycles_; }

 private:
  enum class Phase { kIdle, kStart, kAddress, kWrite, kRead, kStop };
  enum class Bus { kFree, kAddressing, kTransmitting, kReceiving, kRefused };

  void write_control(std::uint8_t value);
  void write_data(std::uint8_t value);
  void begin(std::uint8_t control);
  void run(Phase phase, unsigned bits);
  void ended(std::uint64_t cycle);
  void act(Phase phase, std::uint64_t cycle);
  void address_ended(double now_s);
  void read_ended(double now_s);
  void lose_bus();
  bool is_held() const { return held_clocks_ > 0; }
  void clocked(std::uint64_t clocks);
  void watch_port();
  void port_changed();
  bool is_pulled(std::uint8_t pin);
  void finish(std::uint8_t status);
  void stopped();
  unsigned bit_cycles();
  void reset();

  Mcu& mcu_;
  LevelInterrupt interrupt_;
  CycleTimer timer_;
  std::map<std::uint8_t, I2cDevice*> devices_;
  I2cDevice* device_ = nullptr;
  Phase phase_ = Phase::kIdle;
  Bus bus_ = Bus::kFree;
  bool start_after_stop_ = false;
  std::optional<std::uint8_t> detached_, ignored_;
  std::uint64_t held_clocks_ = 0;
  bool clock_low_ = false, data_low_ = false;  // by the port, while the interface is off
  std::uint64_t bus_cycles_ = 0;
  std::uint64_t action_start_cycle_ = 0;
};

}  // namespace opjoule::rig
