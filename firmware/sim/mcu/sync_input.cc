#include "mcu/sync_input.h"

#include <utility>

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kPinb = 0x23, kDdrb = 0x24, kPortb = 0x25, kTccr1b = 0x81;
constexpr std::uint8_t kSyncPin = 1;           // PB0
constexpr std::uint8_t kNoiseCanceler = 0x80;  // ICNC1
constexpr unsigned kNoiseCanceler_cycles = 4;  // data sheet 16.6.2

}  // namespace

SyncInput::SyncInput(Mcu& mcu, SyncPin pin, std::function<void(std::uint64_t, bool)> on_played)
    : mcu_(mcu),
      pin_(pin),
      on_played_(std::move(on_played)),
      timer_(mcu, [this](std::uint64_t due) { play(due); }),
      pick_up_timer_(mcu, [this](std::uint64_t due) { pick_up(due); }) {
  if (pin == SyncPin::kD8) read_at_d8();
  mcu.on_reset([this] {
    if (pin_ == SyncPin::kD8) detach_pin();
    if (pin_ == SyncPin::kD2) drive_d2();
    arm();
  });
  if (pin == SyncPin::kD8) detach_pin();
  if (pin == SyncPin::kD2) drive_d2();
}

void SyncInput::read_at_d8() {
  mcu_.on_read(kPinb, [this] {
    const std::uint8_t outputs = mcu_.reg(kDdrb);
    const std::uint8_t pulled_up = mcu_.reg(kPortb) & ~outputs & ~kSyncPin;
    const bool level = level_ || (pick_up_cycles_ && this->pulled_up());
    const std::uint8_t sync = level && !(outputs & kSyncPin) ? kSyncPin : 0;
    return static_cast<std::uint8_t>((mcu_.reg(kPortb) & outputs) | pulled_up | sync);
  });
}

/// The line is driven: its level comes from the edges alone, never from simavr's model of the
/// pull-up.
void SyncInput::detach_pin() {
  avr_irq_t* pin = avr_io_getirq(mcu_.avr(), AVR_IOCTL_IOPORT_GETIRQ('B'), IOPORT_IRQ_PIN0);
  avr_irq_t* capture = avr_io_getirq(mcu_.avr(), AVR_IOCTL_TIMER_GETIRQ('1'), TIMER_IRQ_IN_ICP);
  avr_unconnect_irq(pin, capture);
}

bool SyncInput::pulled_up() const { return mcu_.reg(kPortb) & ~mcu_.reg(kDdrb) & kSyncPin; }

void SyncInput::open_line(double hz) {
  pick_up_cycles_ = static_cast<std::uint64_t>(Mcu::kNominal_hz / hz);
  pick_up_timer_.arm(mcu_.cycle() + pick_up_cycles_);
}

void SyncInput::pick_up(std::uint64_t due) {
  const bool level = pulled_up() || !level_;
  if (level != level_) capture(due, level);
  level_ = level;
  pick_up_timer_.arm(due + pick_up_cycles_);
}

/// As a driven line: simavr lets a pull-up raise any pin that it does not know to be pulled from
/// outside.
void SyncInput::drive_d2() {
  avr_ioport_external_t external = {};
  external.name = 'D';
  external.mask = 1 << 2;
  external.value = level_ ? 1 << 2 : 0;
  avr_ioctl(mcu_.avr(), AVR_IOCTL_IOPORT_SET_EXTERNAL('D'), &external);
}

void SyncInput::add(std::uint64_t cycle, bool level) {
  edges_.push_back({cycle, level});
  if (edges_.size() == 1) arm();
}

void SyncInput::arm() {
  if (pick_up_cycles_) pick_up_timer_.arm(mcu_.cycle() + pick_up_cycles_);
  if (!edges_.empty()) timer_.arm(edges_.front().cycle);
}

void SyncInput::play(std::uint64_t due) {
  const Edge edge = edges_.front();
  edges_.pop_front();
  level_ = edge.level;
  if (pin_ == SyncPin::kD2) {
    drive_d2();
    avr_raise_irq(avr_io_getirq(mcu_.avr(), AVR_IOCTL_IOPORT_GETIRQ('D'), 2), edge.level);
  } else {
    const bool filtered = mcu_.reg(kTccr1b) & kNoiseCanceler;
    capture(due + (filtered ? kNoiseCanceler_cycles : 0), edge.level);
  }
  on_played_(edge.cycle, edge.level);
  arm();
}

/// simavr copies the counter at the present cycle, which may be up to four cycles after the edge,
/// since instructions are not interrupted. So it is made to see the edge at its own cycle.
void SyncInput::capture(std::uint64_t cycle, bool level) {
  avr_t* avr = mcu_.avr();
  const avr_cycle_count_t now = std::exchange(avr->cycle, cycle);
  avr_raise_irq(avr_io_getirq(avr, AVR_IOCTL_TIMER_GETIRQ('1'), TIMER_IRQ_IN_ICP), level);
  avr->cycle = now;
}

}  // namespace opjoule::rig
