#include "mcu/twi.h"

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kTwbr = 0xB8, kTwsr = 0xB9, kTwdr = 0xBB, kTwcr = 0xBC;
constexpr std::uint8_t kTwint = 0x80, kTwea = 0x40, kTwsta = 0x20, kTwsto = 0x10, kTwwc = 0x08,
                       kTwen = 0x04;
constexpr unsigned kVector = 24;

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
  reset();
}

void Twi::reset() {
  timer_.cancel();
  phase_ = Phase::kIdle;
  bus_ = Bus::kFree;
  device_ = nullptr;
  start_after_stop_ = false;
  mcu_.reg(kTwsr) = kNoInformation;
  mcu_.reg(kTwdr) = 0xFF;
}

void Twi::detach(std::uint8_t address) {
  const auto found = devices_.find(address);
  if (found == devices_.end()) return;
  if (device_ == found->second) device_ = nullptr;
  devices_.erase(found);
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

/// The next action on the bus, as the control bits and the last one ask (data sheet 22.6).
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
      return finish(device_ && device_->write(mcu_.reg(kTwdr), now_s) ? kWriteAck : kWriteNack);
    case Phase::kRead:
      mcu_.reg(kTwdr) = device_ ? device_->read(now_s) : 0xFF;
      return finish(mcu_.reg(kTwcr) & kTwea ? kReadAck : kReadNack);
    case Phase::kStop:
      return stopped();
    case Phase::kIdle:
      return;
  }
}

void Twi::address_ended(double now_s) {
  const std::uint8_t byte = mcu_.reg(kTwdr);
  const bool read = byte & 1;
  const auto found = devices_.find(byte >> 1);
  device_ = found == devices_.end() ? nullptr : found->second;
  if (device_ && !device_->select(read, now_s)) device_ = nullptr;
  bus_ = read ? Bus::kReceiving : Bus::kTransmitting;
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
