// Writes frames byte by byte into a transmit ring. CRC and COBS are computed as each byte comes, so
// that every sample takes the same short time and the end of a frame takes no longer.
//
// Ring is the caller's:
//   void store(uint8_t offset, uint8_t byte)  puts a byte `offset` places after the write position,
//                                             not yet visible to the reader;
//   void publish(uint8_t count)               moves the write position: the reader may send them.
// Only whole COBS blocks are published. Before begin() the caller makes sure that
// encoded_bytes(...) places are free: the encoder does not check. Not reentrant: one frame at a
// time, from one context; only the ring is shared with the transmit interrupt.
#ifndef OPJOULE_PROTOCOL_FRAME_ENCODER_H_
#define OPJOULE_PROTOCOL_FRAME_ENCODER_H_

#include <stdint.h>

#include "crc16.h"
#include "messages.h"

namespace opjoule {
namespace protocol {

// Bytes on the line of a frame with `body_bytes` bytes of fields and items: with header, CRC, one
// COBS code byte and the 0x00. Holds up to kMaxFrameBytes, type to CRC.
constexpr uint16_t encoded_bytes(uint16_t body_bytes) {
  return static_cast<uint16_t>(kHeaderBytes + body_bytes + kCrcBytes + 2);
}

// How many items fit into a frame of message M.
template <typename M>
constexpr uint8_t max_items() {
  return (kMaxFrameBytes - kHeaderBytes - kCrcBytes - M::kBytes) / M::kItemBytes;
}

template <typename Ring>
class FrameEncoder {
 public:
  explicit FrameEncoder(Ring& ring) : ring_(ring), crc_(kCrcInit), length_(0) {}

  void begin(uint8_t type, uint32_t seq) {
    crc_ = kCrcInit;
    length_ = 0;
    put8(type);
    put32(seq);
  }

  void put8(uint8_t byte) {
    crc_ = crc16_update(crc_, byte);
    stuff(byte);
  }
  void put16(uint16_t value) {
    put8(static_cast<uint8_t>(value));
    put8(static_cast<uint8_t>(value >> 8));
  }
  void put32(uint32_t value) {
    put16(static_cast<uint16_t>(value));
    put16(static_cast<uint16_t>(value >> 16));
  }
  void put64(uint64_t value) {
    put32(static_cast<uint32_t>(value));
    put32(static_cast<uint32_t>(value >> 32));
  }

  // CRC, the last block, the 0x00: the frame is complete.
  void end() {
    const uint16_t crc = crc_;
    stuff(static_cast<uint8_t>(crc));
    stuff(static_cast<uint8_t>(crc >> 8));
    close_block();
    ring_.store(0, 0);
    ring_.publish(1);
  }

  // A message without items in one call.
  template <typename M>
  void send(const M& message, uint32_t seq) {
    begin(M::kType, seq);
    message.write(*this);
    end();
  }

 private:
  // Consistent Overhead Byte Stuffing (Cheshire and Baker, IEEE/ACM Trans. Networking 7(2), 1999):
  // the open block starts at the ring's write position with a place for its code byte.
  void stuff(uint8_t byte) {
    if (byte == 0) {
      close_block();
      return;
    }
    ring_.store(++length_, byte);
    if (length_ == 254) close_block();
  }

  void close_block() {
    const uint8_t code = static_cast<uint8_t>(length_ + 1);
    ring_.store(0, code);
    ring_.publish(code);
    length_ = 0;
  }

  Ring& ring_;
  uint16_t crc_;
  uint8_t length_;  // bytes in the open block
};

}  // namespace protocol
}  // namespace opjoule

#endif  // OPJOULE_PROTOCOL_FRAME_ENCODER_H_
