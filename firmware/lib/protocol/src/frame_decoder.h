// Takes bytes from the line and gives whole frames. A damaged frame is dropped, which the result
// says; the next 0x00 starts afresh. One buffer of Capacity bytes (type to CRC), no heap. Not
// reentrant: push() from one context.
#ifndef OPJOULE_PROTOCOL_FRAME_DECODER_H_
#define OPJOULE_PROTOCOL_FRAME_DECODER_H_

#include <stdint.h>

#include "crc16.h"
#include "messages.h"

namespace opjoule {
namespace protocol {

// Reads little-endian fields; past the end it gives 0 and ok() turns false.
class ByteReader {
 public:
  ByteReader(const uint8_t* data, uint8_t size) : data_(data), left_(size), ok_(true) {}

  uint8_t get8() {
    if (left_ == 0) {
      ok_ = false;
      return 0;
    }
    --left_;
    return *data_++;
  }
  uint16_t get16() {
    const uint8_t low = get8();
    return static_cast<uint16_t>(low | (static_cast<uint16_t>(get8()) << 8));
  }
  uint32_t get32() {
    const uint16_t low = get16();
    return low | (static_cast<uint32_t>(get16()) << 16);
  }
  uint64_t get64() {
    const uint32_t low = get32();
    return low | (static_cast<uint64_t>(get32()) << 32);
  }

  uint8_t left() const { return left_; }
  bool ok() const { return ok_; }

 private:
  const uint8_t* data_;
  uint8_t left_;
  bool ok_;
};

enum class Decoded : uint8_t {
  nothing,  // in the middle of a frame, or an empty one
  frame,    // type(), seq() and body() are valid until the next push()
  bad,      // a frame ended and was not valid: COBS, length or CRC
};

template <uint8_t Capacity>
class FrameDecoder {
 public:
  FrameDecoder() { restart(); }

  Decoded push(uint8_t byte) {
    if (finished_) restart();
    if (byte == 0) return finish();
    if (left_in_block_ == 0) {
      // A code byte: the block before it ended with a zero, unless it was full or there was none.
      if (code_ != 0xFF) append(0);
      code_ = byte;
      left_in_block_ = static_cast<uint8_t>(byte - 1);
    } else {
      --left_in_block_;
      append(byte);
    }
    return Decoded::nothing;
  }

  uint8_t type() const { return buffer_[0]; }
  uint32_t seq() const { return ByteReader(buffer_ + 1, 4).get32(); }
  const uint8_t* body() const { return buffer_ + kHeaderBytes; }
  uint8_t body_size() const { return static_cast<uint8_t>(size_ - kHeaderBytes - kCrcBytes); }

  // The body as message M, which has no items. False: the length does not fit this message.
  template <typename M>
  bool read(M* message) const {
    if (body_size() != M::kBytes) return false;
    ByteReader in(body(), body_size());
    message->read(in);
    return in.ok();
  }

 private:
  void restart() {
    size_ = 0;
    code_ = 0xFF;  // as after a full block: the first code byte adds no zero
    left_in_block_ = 0;
    overrun_ = false;
    finished_ = false;
  }

  void append(uint8_t byte) {
    if (size_ == Capacity) {
      overrun_ = true;
      return;
    }
    buffer_[size_++] = byte;
  }

  Decoded finish() {
    finished_ = true;
    if (size_ == 0 && left_in_block_ == 0 && code_ == 0xFF) return Decoded::nothing;
    if (overrun_ || left_in_block_ != 0 || size_ < kHeaderBytes + kCrcBytes) return Decoded::bad;
    uint16_t crc = kCrcInit;
    for (uint8_t i = 0; i < size_ - kCrcBytes; ++i) crc = crc16_update(crc, buffer_[i]);
    const uint16_t sent = ByteReader(buffer_ + size_ - kCrcBytes, 2).get16();
    return crc == sent ? Decoded::frame : Decoded::bad;
  }

  uint8_t buffer_[Capacity];
  uint8_t size_;
  uint8_t code_;           // of the block being read
  uint8_t left_in_block_;  // bytes of it still to come
  bool overrun_;
  bool finished_;
};

}  // namespace protocol
}  // namespace opjoule

#endif  // OPJOULE_PROTOCOL_FRAME_DECODER_H_
