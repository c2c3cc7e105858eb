// The simulated ATmega328P: program, time, registers and reset.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "mcu/simavr.h"
#include "signal/oscillator.h"

namespace opjoule::rig {

/// Not copyable: simavr keeps pointers into it. One thread.
class Mcu {
 public:
  static constexpr double kNominal_hz = 16e6;

  /// Loads `elf_path`. `clock`: how the resonator departs from 16 MHz.
  /// Throws RigError: unreadable or no AVR program.
  explicit Mcu(const std::string& elf_path, const OscillatorErrors& clock = {},
               std::uint64_t seed = 1);
  ~Mcu();
  Mcu(const Mcu&) = delete;
  Mcu& operator=(const Mcu&) = delete;

  std::uint64_t cycle() const { return avr_->cycle; }
  /// True rate of the clock when the microcontroller started.
  double clock_hz() const { return clock_.hz_at(0); }
  /// True time [s] since start-up at a cycle.
  double time_s(std::uint64_t cycle) const { return clock_.time_s(static_cast<double>(cycle)); }
  double now_s() const { return time_s(cycle()); }
  /// First cycle at or after a true time.
  std::uint64_t cycle_at(double time_s) const;

  /// Runs until `cycle`, at most four cycles further. Throws RigError if the program crashed.
  void run_until(std::uint64_t cycle);

  /// Resets the processor and its peripherals at once, as a brown-out does; memory keeps its
  /// content.
  void reset_brown_out();

  /// Called at the end of every reset, whatever caused it; simavr has then dropped all cycle
  /// timers.
  void on_reset(std::function<void()> call) { on_reset_.push_back(std::move(call)); }

  std::uint64_t resets() const { return resets_; }

  /// The program's main loop hangs from now on; interrupts go on.
  void hang();
  /// From the next reset on the program starts behind a boot loader like the old one of Arduino
  /// Nanos: it waits for an upload for a second, and leaves the watchdog as it finds it.
  void add_old_boot_loader();

  /// The program's view of an I/O register, by data address.
  std::uint8_t& reg(std::uint16_t address) { return avr_->data[address]; }

  /// Replaces what the program's writes to (reads from) a register do. A write hook must store the
  /// value itself; a read hook returns what the program sees.
  using WriteHook = std::function<void(std::uint8_t value)>;
  using ReadHook = std::function<std::uint8_t()>;
  void on_write(std::uint16_t address, WriteHook hook);
  void on_read(std::uint16_t address, ReadHook hook);

  avr_t* avr() { return avr_; }
  avr_int_vector_t* vector(unsigned number);

 private:
  static void reset_trampoline(avr_io_t* io);
  void watch_resets();
  void put_words(std::uint32_t address, std::initializer_list<std::uint16_t> words);
  void count_interrupt_entry();
  void load(const std::string& elf_path);

  struct ResetWatch {
    avr_io_t io;
    Mcu* mcu;
  };
  avr_t* avr_ = nullptr;
  const Oscillator clock_;
  std::uint64_t resets_ = 0;
  ResetWatch reset_watch_{};
  std::vector<std::function<void()>> on_reset_;
  std::vector<std::unique_ptr<WriteHook>> write_hooks_;
  std::vector<std::unique_ptr<ReadHook>> read_hooks_;
};

/// A call at a cycle. A reset of the microcontroller drops it; re-arm from Mcu::on_reset.
class CycleTimer {
 public:
  /// The call gets the cycle at which it was due; it may arm the timer again.
  CycleTimer(Mcu& mcu, std::function<void(std::uint64_t due)> call)
      : mcu_(mcu), call_(std::move(call)) {}
  CycleTimer(const CycleTimer&) = delete;
  CycleTimer& operator=(const CycleTimer&) = delete;

  void arm(std::uint64_t due);
  void cancel();
  bool armed() const { return armed_; }

 private:
  static avr_cycle_count_t trampoline(avr_t* avr, avr_cycle_count_t when, void* param);
  Mcu& mcu_;
  std::function<void(std::uint64_t)> call_;
  bool armed_ = false;
};

/// An interrupt whose flag stays set until its cause is gone (TWINT, RXC, UDRE): as in hardware, it
/// is raised again if the handler leaves the flag set.
class LevelInterrupt {
 public:
  LevelInterrupt(Mcu& mcu, unsigned vector_number);
  void set(bool flag);
  /// To be called when the enable bit may have changed.
  void refresh();

 private:
  Mcu& mcu_;
  avr_int_vector_t* vector_;
};

}  // namespace opjoule::rig
