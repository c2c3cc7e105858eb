#include "mcu/twi.h"

#include <algorithm>

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kTwbr = 0xB8, kTwsr = 0xB9, kTwdr = 0xBB, kTwcr = 0xBC;
constexpr std::uint8_t kTwint = 0x80, kTwea = 0x40, kTwsta = 0x20, kTwsto = 0x10, kTwwc = 0x08,
                       kTwen = 0x04;
constexpr std::uint16_t kPinc = 0x26, kDdrc = 0x27, kPortc = 0x28;
constexpr std::uint8_t kData = 1 << 4, kClock = 1 << 5;  // PC4 and PC5
constexpr unsigned kVector = 24;
constexpr unsigned kByteClocks = 9;

// Status codes, data sheet tables 22-2 and 22-3.
enum Status : std::uint8_t {
  kStartSent = 0x08,
  kRepeatedStartSent = 0x10,
  kWriteAddressAck = 0x18,
  kWriteAddressNack = 0x20,
  kWriteAck = 0x28,
  kWriteNack = 0x30,
  kReadAddressAck = 0x40,
  kReadAddressNack = 0x48,
  kReadAck = 0x50,
  kReadNack = 0x58,
  kArbitrationLost = 0x38,
  kNoInformation = 0xF8,
};

}  // namespace

Twi::Twi(Mcu& mcu)
    : mcu_(mcu), interrupt_(mcu, kVector), timer_(mcu, [this](std::uint64_t due) { ended(due); }) {
  mcu.on_write(kTwcr, [this](std::uint8_t value) { write_control(value); });
  mcu.on_write(kTwdr, [this](std::uint8_t value) { write_data(value); });
  mcu.on_write(kTwsr, [this](std::uint8_t value) {
    mcu_.reg(kTwsr) = static_cast<std::uint8_t>((mcu_.reg(kTwsr) & 0xF8) | (value & 3));
  });
  mcu.on_reset([this] { reset(); });
  watch_port();
  reset();
}

void Twi::watch_port() {
  for (const auto address : {kDdrc, kPortc})
    mcu_.on_write(address, [this, address](std::uint8_t value) {
      mcu_.reg(address) = value;
      port_changed();
    });
  mcu_.on_read(kPinc, [this] {
    std::uint8_t high = mcu_.reg(kPinc) & static_cast<std::uint8_t>(~(kData | kClock));
    if (!is_pulled(kClock)) high |= kClock;
    if (!is_pulled(kData) && !is_held()) high |= kData;
    return high;
  });
}

/// The port drives a pin of the bus low.
bool Twi::is_pulled(std::uint8_t pin) {
  const bool port_has_it = !(mcu_.reg(kTwcr) & kTwen);
  return port_has_it && mcu_.reg(kDdrc) & pin && !(mcu_.reg(kPortc) & pin);
}

void Twi::port_changed() {
  const bool clock_low = is_pulled(kClock), data_low = is_pulled(kData);
  if (clock_low_ && !clock_low) clocked(1);
  clock_low_ = clock_low;
  const bool stop = data_low_ && !data_low && !clock_low && !is_held();
  data_low_ = data_low;
  if (stop && on_action) on_action({mcu_.cycle(), mcu_.cycle(), "stop", 0});
}

/// What the device that holds SDA sees of the clock.
void Twi::clocked(std::uint64_t clocks) { held_clocks_ -= std::min(clocks, held_clocks_); }

void Twi::reset() {
  timer_.cancel();
  phase_ = Phase::kIdle;
  bus_ = Bus::kFree;
  device_ = nullptr;
  start_after_stop_ = false;
  mcu_.reg(kTwsr) = kNoInformation;
  mcu_.reg(kTwdr) = 0xFF;
}

unsigned Twi::bit_cycles() { return 16 + 2u * mcu_.reg(kTwbr) * (1u << 2 * (mcu_.reg(kTwsr) & 3)); }

void Twi::write_data(std::uint8_t value) {
  if (mcu_.reg(kTwcr) & kTwint || phase_ == Phase::kIdle) {
    mcu_.reg(kTwdr) = value;
    mcu_.reg(kTwcr) &= static_cast<std::uint8_t>(~kTwwc);
  } else {
    mcu_.reg(kTwcr) |= kTwwc;
  }
}

void Twi::write_control(std::uint8_t value) {
  const std::uint8_t before = mcu_.reg(kTwcr);
  const bool stopping = phase_ == Phase::kStop;
  const std::uint8_t kept = before & (kTwint | kTwwc | (stopping ? kTwsto : 0));
  mcu_.reg(kTwcr) = static_cast<std::uint8_t>((value & ~(kTwint | kTwwc)) | kept);
  if (!(value & kTwen)) {
    mcu_.reg(kTwcr) &= static_cast<std::uint8_t>(~kTwsto);
    interrupt_.set(false);
    const std::uint8_t rate = mcu_.reg(kTwsr) & 3;
    reset();
    mcu_.reg(kTwsr) |= rate;
    return;
  }
  if (value & kTwint) {
    interrupt_.set(false);
    begin(value);
  } else {
    interrupt_.refresh();
    if (value & kTwsta && phase_ == Phase::kIdle && bus_ == Bus::kFree) begin(value);
  }
}

/// The next action on the bus, as it follows from the control bits and the last action (data sheet
/// 22.6).
void Twi::begin(std::uint8_t control) {
  if (phase_ == Phase::kStop) {
    start_after_stop_ = control & kTwsta;
    return;
  }
  if (phase_ != Phase::kIdle) return;
  if (control & kTwsto) {
    start_after_stop_ = control & kTwsta;
    run(Phase::kStop, 1);
  } else if (control & kTwsta) {
    run(Phase::kStart, 1);
  } else if (bus_ == Bus::kAddressing) {
    run(Phase::kAddress, 9);
  } else if (bus_ == Bus::kTransmitting) {
    run(Phase::kWrite, 9);
  } else if (bus_ == Bus::kReceiving) {
    run(Phase::kRead, 9);
  }
}

void Twi::run(Phase phase, unsigned bits) {
  phase_ = phase;
  action_start_cycle_ = mcu_.cycle();
  if (is_held() && (phase == Phase::kStart || phase == Phase::kStop)) return;  // never ends
  const std::uint64_t cycles = std::uint64_t{bits} * bit_cycles();
  bus_cycles_ += cycles;
  timer_.arm(mcu_.cycle() + cycles);
}

void Twi::ended(std::uint64_t cycle) {
  const Phase phase = phase_;
  const std::uint64_t start_cycle = action_start_cycle_;
  phase_ = Phase::kIdle;
  act(phase, cycle);
  static constexpr const char* kNames[] = {"idle", "start", "address", "write", "read", "stop"};
  if (on_action) on_action({start_cycle, cycle, kNames[static_cast<int>(phase)], mcu_.reg(kTwdr)});
  if (on_byte && (phase == Phase::kAddress || phase == Phase::kWrite || phase == Phase::kRead))
    on_byte(cycle);
}

void Twi::act(Phase phase, std::uint64_t cycle) {
  const double now_s = mcu_.time_s(cycle);
  switch (phase) {
    case Phase::kStart: {
      const bool repeated = bus_ != Bus::kFree;
      bus_ = Bus::kAddressing;
      return finish(repeated ? kRepeatedStartSent : kStartSent);
    }
    case Phase::kAddress:
      return address_ended(now_s);
    case Phase::kWrite:
      if (is_held()) return lose_bus();
      return finish(device_ && device_->write(mcu_.reg(kTwdr), now_s) ? kWriteAck : kWriteNack);
    case Phase::kRead:
      return read_ended(now_s);
    case Phase::kStop:
      return stopped();
    case Phase::kIdle:
      return;
  }
}

void Twi::read_ended(double now_s) {
  mcu_.reg(kTwdr) = is_held() ? 0 : device_ ? device_->read(now_s) : 0xFF;
  clocked(kByteClocks);
  const bool acknowledges = mcu_.reg(kTwcr) & kTwea;
  if (is_held() && !acknowledges) return lose_bus();
  finish(acknowledges ? kReadAck : kReadNack);
}

/// A 1 was sent but a 0 seen: to the interface that is another controller.
void Twi::lose_bus() {
  clocked(1);
  bus_ = Bus::kFree;
  device_ = nullptr;
  finish(kArbitrationLost);
}

void Twi::address_ended(double now_s) {
  if (is_held()) return lose_bus();
  const std::uint8_t byte = mcu_.reg(kTwdr);
  const bool read = byte & 1;
  if (read && detached_ == byte >> 1) devices_.erase(*detached_);
  const auto found = devices_.find(byte >> 1);
  device_ = found == devices_.end() || ignored_ == byte >> 1 ? nullptr : found->second;
  if (device_ && !device_->select(read, now_s)) device_ = nullptr;
  // If an address to read from was not acknowledged, only START or STOP can follow (data sheet,
  // table 22-3: 0x48).
  bus_ = !read ? Bus::kTransmitting : device_ ? Bus::kReceiving : Bus::kRefused;
  if (read)
    finish(device_ ? kReadAddressAck : kReadAddressNack);
  else
    finish(device_ ? kWriteAddressAck : kWriteAddressNack);
}

void Twi::finish(std::uint8_t status) {
  mcu_.reg(kTwsr) = static_cast<std::uint8_t>((mcu_.reg(kTwsr) & 3) | status);
  interrupt_.set(true);
}

void Twi::stopped() {
  mcu_.reg(kTwcr) &= static_cast<std::uint8_t>(~kTwsto);
  mcu_.reg(kTwsr) = static_cast<std::uint8_t>((mcu_.reg(kTwsr) & 3) | kNoInformation);
  bus_ = Bus::kFree;
  device_ = nullptr;
  if (start_after_stop_) run(Phase::kStart, 1);
  start_after_stop_ = false;
}

}  // namespace opjoule::rig
