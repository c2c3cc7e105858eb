#include "mcu/uart.h"

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kUcsra = 0xC0, kUcsrb = 0xC1, kUbrrl = 0xC4, kUbrrh = 0xC5, kUdr = 0xC6;
constexpr std::uint8_t kTxc = 0x40, kUdre = 0x20, kOverrun = 0x08, kU2x = 0x02,
                       kMultiProcessor = 0x01;
constexpr std::uint8_t kRxEnable = 0x10, kTxEnable = 0x08;
constexpr unsigned kRxVector = 18, kUdreVector = 19, kTxVector = 20;
constexpr std::size_t kReceiveDepth = 3;  // two buffers and the shift register, data sheet 20.8.5

}  // namespace

Uart::Uart(Mcu& mcu, std::function<void(std::uint8_t)> on_sent)
    : mcu_(mcu),
      on_sent_(std::move(on_sent)),
      receive_complete_(mcu, kRxVector),
      buffer_empty_(mcu, kUdreVector),
      transmit_complete_(mcu.vector(kTxVector)),
      sender_(mcu, [this](std::uint64_t due) { sent(due); }),
      receiver_(mcu, [this](std::uint64_t due) { received(due); }) {
  const auto plain = [&mcu](std::uint16_t address) {
    mcu.on_write(address, [&mcu, address](std::uint8_t value) { mcu.reg(address) = value; });
  };
  plain(kUbrrl);
  plain(kUbrrh);
  mcu.on_write(kUcsra, [this](std::uint8_t value) { write_status(value); });
  mcu.on_read(kUcsra, [this] { return mcu_.reg(kUcsra); });
  mcu.on_write(kUcsrb, [this](std::uint8_t value) { write_enable(value); });
  mcu.on_write(kUdr, [this](std::uint8_t value) { write_data(value); });
  mcu.on_read(kUdr, [this] { return read_data(); });
  mcu.on_reset([this] { reset(); });
  reset();
}

/// Registers as after power-up (data sheet 20.11), not as simavr leaves them.
void Uart::reset() {
  sender_.cancel();
  receiver_.cancel();
  shift_.reset();
  buffer_.reset();
  waiting_.clear();
  mcu_.reg(kUcsra) = kUdre;
  mcu_.reg(kUcsrb) = 0;
}

std::uint64_t Uart::byte_cycles() {
  const unsigned divisor = (mcu_.reg(kUbrrl) | (mcu_.reg(kUbrrh) & 15u) << 8) + 1;
  return 10u * divisor * (mcu_.reg(kUcsra) & kU2x ? 8 : 16);
}

void Uart::write_status(std::uint8_t value) {
  constexpr std::uint8_t kWritable = kU2x | kMultiProcessor;
  mcu_.reg(kUcsra) =
      static_cast<std::uint8_t>((mcu_.reg(kUcsra) & ~kWritable) | (value & kWritable));
  if (value & kTxc) {
    avr_clear_interrupt(mcu_.avr(), transmit_complete_);
    mcu_.reg(kUcsra) &= static_cast<std::uint8_t>(~kTxc);
  }
}

void Uart::write_enable(std::uint8_t value) {
  mcu_.reg(kUcsrb) = value;
  if (!(value & kRxEnable)) {
    receiver_.cancel();
    waiting_.clear();
    receive_complete_.set(false);
  } else if (!line_.empty() && !receiver_.armed()) {
    receiver_.arm(mcu_.cycle() + byte_cycles());
  }
  receive_complete_.refresh();
  buffer_empty_.refresh();
}

void Uart::write_data(std::uint8_t value) {
  if (!(mcu_.reg(kUcsrb) & kTxEnable) || !(mcu_.reg(kUcsra) & kUdre)) return;
  if (!shift_) return shift_out(value, mcu_.cycle());
  buffer_ = value;
  buffer_empty_.set(false);
}

void Uart::shift_out(std::uint8_t byte, std::uint64_t start) {
  shift_ = byte;
  // A handler that has filled the register is to be called again when it is empty, which is at
  // once.
  buffer_empty_.refresh();
  sender_.arm(start + byte_cycles());
}

void Uart::sent(std::uint64_t cycle) {
  ++sent_;
  on_sent_(*shift_);
  shift_.reset();
  if (!buffer_) {
    avr_raise_interrupt(mcu_.avr(), transmit_complete_);
    return;
  }
  shift_out(*buffer_, cycle);
  buffer_.reset();
  buffer_empty_.set(true);
}

void Uart::feed(const std::uint8_t* bytes, std::size_t count) {
  line_.insert(line_.end(), bytes, bytes + count);
  if (count > 0 && mcu_.reg(kUcsrb) & kRxEnable && !receiver_.armed())
    receiver_.arm(mcu_.cycle() + byte_cycles());
}

void Uart::received(std::uint64_t cycle) {
  const std::uint8_t byte = line_.front();
  line_.pop_front();
  ++received_;
  if (waiting_.size() < kReceiveDepth) {
    waiting_.push_back(byte);
    receive_complete_.set(true);
  } else {
    ++overruns_;
    mcu_.reg(kUcsra) |= kOverrun;
  }
  if (!line_.empty()) receiver_.arm(cycle + byte_cycles());
}

std::uint8_t Uart::read_data() {
  if (waiting_.empty()) return mcu_.reg(kUdr);
  const std::uint8_t byte = waiting_.front();
  waiting_.pop_front();
  mcu_.reg(kUcsra) &= static_cast<std::uint8_t>(~kOverrun);
  if (waiting_.empty()) receive_complete_.set(false);
  return byte;
}

}  // namespace opjoule::rig
