#include "mcu/mcu.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "errors.h"

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kMcusr = 0x54;
constexpr std::uint8_t kBrownOutFlag = 1 << 2;
constexpr std::uint32_t kHang = 0x7700, kBootLoader = 0x7800;  // behind any firmware
constexpr unsigned kInterruptEntry_cycles = 4;  // ATmega328P data sheet, 7.7.1; simavr 1.6 counts 0

void log_errors(avr_t*, const int level, const char* format, va_list arguments) {
  if (level != LOG_ERROR) return;
  std::fputs("rig-sim: simavr: ", stderr);
  std::vfprintf(stderr, format, arguments);
}

/// Whether the file is an ELF for AVR (e_machine 83), which libsimavr itself does not check.
void check_elf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  unsigned char header[20] = {};
  if (!file) throw RigError("cannot read " + path + ": build the firmware first (pio run -e uno)");
  file.read(reinterpret_cast<char*>(header), sizeof header);
  if (!file || header[0] != 0x7F || header[1] != 'E' || header[2] != 'L' || header[3] != 'F' ||
      header[18] != 83)
    throw RigError(path + " is not an AVR program: give the firmware's ELF file");
}

void add_interrupt_entry(avr_irq_t*, std::uint32_t running, void* param) {
  if (running) static_cast<avr_t*>(param)->cycle += kInterruptEntry_cycles;
}

}  // namespace

Mcu::Mcu(const std::string& elf_path, const OscillatorErrors& clock, std::uint64_t seed)
    : clock_(kNominal_hz, clock, seed) {
  check_elf(elf_path);
  avr_global_logger_set(log_errors);
  avr_ = avr_make_mcu_by_name("atmega328p");
  if (!avr_) throw RigError("libsimavr does not know the atmega328p", 1);
  avr_init(avr_);
  avr_->frequency = static_cast<std::uint32_t>(kNominal_hz);
  avr_->sleep = [](avr_t*, avr_cycle_count_t) {};
  load(elf_path);
  count_interrupt_entry();
  watch_resets();
}

Mcu::~Mcu() {
  avr_terminate(avr_);
  std::free(avr_);
}

void Mcu::load(const std::string& elf_path) {
  elf_firmware_t firmware{};
  if (elf_read_firmware(elf_path.c_str(), &firmware) != 0 || firmware.flashsize == 0)
    throw RigError(elf_path + " holds no program: give the firmware's ELF file");
  if (firmware.flashbase + firmware.flashsize > avr_->flashend + 1)
    throw RigError(elf_path + " does not fit an ATmega328P's flash");
  firmware.frequency = static_cast<std::uint32_t>(kNominal_hz);
  avr_load_firmware(avr_, &firmware);
  std::free(firmware.flash);
}

void Mcu::count_interrupt_entry() {
  for (unsigned i = 0; i < avr_->interrupts.vector_count; ++i)
    avr_irq_register_notify(avr_->interrupts.vector[i]->irq + AVR_INT_IRQ_RUNNING,
                            add_interrupt_entry, avr_);
}

/// Puts an I/O module at the end of simavr's list: its reset is called after all others.
void Mcu::watch_resets() {
  reset_watch_.mcu = this;
  reset_watch_.io.kind = "rig";
  reset_watch_.io.avr = avr_;
  reset_watch_.io.reset = reset_trampoline;
  avr_io_t** end = &avr_->io_port;
  while (*end) end = &(*end)->next;
  *end = &reset_watch_.io;
  avr_->run_cycle_limit = static_cast<avr_cycle_count_t>(kNominal_hz);
}

void Mcu::reset_trampoline(avr_io_t* io) {
  Mcu& mcu = *reinterpret_cast<ResetWatch*>(io)->mcu;
  ++mcu.resets_;
  // Lets simavr run from one timer to the next without checking them after every instruction.
  mcu.avr_->run_cycle_limit = static_cast<avr_cycle_count_t>(kNominal_hz);
  for (const auto& call : mcu.on_reset_) call();
}

std::uint64_t Mcu::cycle_at(double time_s) const {
  return time_s <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(clock_.count_at(time_s)));
}

void Mcu::run_until(std::uint64_t target) {
  if (target <= avr_->cycle) return;
  CycleTimer stop(*this, [](std::uint64_t) {});
  stop.arm(target);
  while (avr_->cycle < target) {
    const int state = avr_run(avr_);
    if (state == cpu_Crashed || state == cpu_Done) {
      char text[96];
      std::snprintf(text, sizeof text, "the firmware %s at %.6f s, program counter 0x%04x",
                    state == cpu_Done ? "went to sleep with interrupts off" : "crashed", now_s(),
                    static_cast<unsigned>(avr_->pc));
      throw RigError(text, 1);
    }
  }
  stop.cancel();
}

void Mcu::put_words(std::uint32_t address, std::initializer_list<std::uint16_t> words) {
  for (const std::uint16_t word : words) {
    avr_->flash[address++] = static_cast<std::uint8_t>(word);
    avr_->flash[address++] = static_cast<std::uint8_t>(word >> 8);
  }
}

void Mcu::hang() {
  while (!avr_->sreg[S_I]) avr_run(avr_);
  put_words(kHang, {0xCFFF});  // rjmp .-2
  avr_->pc = kHang;
}

void Mcu::add_old_boot_loader() {
  put_words(kBootLoader, {0xE020, 0xED84, 0xE390,          // r25:r24:r18 = 0x30D400
                          0x5021, 0x4080, 0x4090, 0xF7E1,  // counted down, 5 cycles each: 1 s
                          0x940C, 0x0000});                // jmp 0
  avr_->reset_pc = kBootLoader;
}

void Mcu::reset_brown_out() {
  avr_reset(avr_);
  reg(kMcusr) |= kBrownOutFlag;
}

void Mcu::on_write(std::uint16_t address, WriteHook hook) {
  write_hooks_.push_back(std::make_unique<WriteHook>(std::move(hook)));
  auto& slot = avr_->io[AVR_DATA_TO_IO(address)].w;
  slot.param = write_hooks_.back().get();
  slot.c = [](avr_t*, avr_io_addr_t, std::uint8_t value, void* param) {
    (*static_cast<WriteHook*>(param))(value);
  };
}

void Mcu::on_read(std::uint16_t address, ReadHook hook) {
  read_hooks_.push_back(std::make_unique<ReadHook>(std::move(hook)));
  auto& slot = avr_->io[AVR_DATA_TO_IO(address)].r;
  slot.param = read_hooks_.back().get();
  slot.c = [](avr_t*, avr_io_addr_t, void* param) { return (*static_cast<ReadHook*>(param))(); };
}

avr_int_vector_t* Mcu::vector(unsigned number) {
  for (unsigned i = 0; i < avr_->interrupts.vector_count; ++i)
    if (avr_->interrupts.vector[i]->vector == number) return avr_->interrupts.vector[i];
  throw RigError("the simulated microcontroller has no interrupt " + std::to_string(number), 1);
}

void CycleTimer::arm(std::uint64_t due) {
  const std::uint64_t now = mcu_.cycle();
  // A cycle already past stays as it is (the sum wraps), so that chains of timers keep their
  // period.
  avr_cycle_timer_register(mcu_.avr(), due - now, trampoline, this);
  armed_ = true;
}

void CycleTimer::cancel() {
  avr_cycle_timer_cancel(mcu_.avr(), trampoline, this);
  armed_ = false;
}

avr_cycle_count_t CycleTimer::trampoline(avr_t*, avr_cycle_count_t when, void* param) {
  auto& timer = *static_cast<CycleTimer*>(param);
  timer.armed_ = false;
  timer.call_(when);
  return 0;
}

LevelInterrupt::LevelInterrupt(Mcu& mcu, unsigned vector_number)
    : mcu_(mcu), vector_(mcu.vector(vector_number)) {
  avr_irq_register_notify(
      vector_->irq + AVR_INT_IRQ_RUNNING,
      [](avr_irq_t*, std::uint32_t running, void* self) {
        if (!running) static_cast<LevelInterrupt*>(self)->refresh();
      },
      this);
}

void LevelInterrupt::set(bool flag) {
  if (flag) {
    avr_raise_interrupt(mcu_.avr(), vector_);
  } else {
    avr_clear_interrupt(mcu_.avr(), vector_);
    avr_regbit_clear(mcu_.avr(), vector_->raised);
  }
}

void LevelInterrupt::refresh() {
  if (avr_regbit_get(mcu_.avr(), vector_->raised)) avr_raise_interrupt(mcu_.avr(), vector_);
}

}  // namespace opjoule::rig
