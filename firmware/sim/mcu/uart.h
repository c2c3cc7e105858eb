// USART0 of the ATmega328P as an asynchronous 8N1 port, in place of simavr's, which sends 11 bits a
// byte through one buffer and takes U2X in only with UBRR.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <optional>

#include "mcu/mcu.h"

namespace opjoule::rig {

/// Transmitter: shift register behind one buffer. Receiver: shift register before two. Ten bits a
/// byte at the rate of UBRR0 and U2X0 when the byte starts. Always 8N1; parity, frame errors,
/// synchronous and multi-processor modes are not modelled.
class Uart {
 public:
  /// `on_sent` gets each byte when its stop bit has passed.
  Uart(Mcu& mcu, std::function<void(std::uint8_t)> on_sent);

  /// Queues bytes on the receive line; they follow each other at the line rate.
  void feed(const std::uint8_t* bytes, std::size_t count);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }
  /// Received bytes lost because the program did not read in time.
  std::uint64_t overruns() const { return overruns_; }

 private:
  std::uint64_t byte_cycles();
  void write_status(std::uint8_t value);
  void write_enable(std::uint8_t value);
  void write_data(std::uint8_t value);
  std::uint8_t read_data();
  void shift_out(std::uint8_t byte, std::uint64_t start);
  void sent(std::uint64_t cycle);
  void received(std::uint64_t cycle);
  void reset();

  Mcu& mcu_;
  std::function<void(std::uint8_t)> on_sent_;
  LevelInterrupt receive_complete_, buffer_empty_;
  avr_int_vector_t* transmit_complete_;
  CycleTimer sender_, receiver_;
  std::optional<std::uint8_t> shift_, buffer_;
  std::deque<std::uint8_t> line_;  // still to come on the receive line
  std::deque<std::uint8_t>
      waiting_;  // received, not yet read: at most two, and one in the shift register
  std::uint64_t sent_ = 0, received_ = 0, overruns_ = 0;
};

}  // namespace opjoule::rig
