// Bytes on their way to the line: the encoder writes (main loop), the transmit interrupt reads.
// Stored bytes become visible only with publish(). No locks: one writer, one reader, indexes of one
// byte.
#ifndef OPJOULE_LINK_TRANSMIT_RING_H_
#define OPJOULE_LINK_TRANSMIT_RING_H_

#include <stdint.h>

namespace opjoule {

class TransmitRing {
 public:
  static constexpr uint8_t kCapacity =
      255;  // of 256 places; one stays free to tell full from empty

  // Writer; offset + 1 and count are at most what room() gave at the last publish().
  void store(uint8_t offset, uint8_t byte) {
    bytes_[static_cast<uint8_t>(head_ + offset)] = byte;
    stored_ = static_cast<uint8_t>(offset + 1);
  }
  void publish(uint8_t count) {
    head_ = static_cast<uint8_t>(head_ + count);
    stored_ = 0;
  }
  // Free places: those that hold no byte, published or not.
  uint8_t room() const { return static_cast<uint8_t>(tail_ - head_ - 1 - stored_); }

  // Reader.
  bool empty() const { return head_ == tail_; }
  uint8_t pop() {
    const uint8_t byte = bytes_[tail_];
    tail_ = static_cast<uint8_t>(tail_ + 1);
    return byte;
  }

 private:
  uint8_t bytes_[256];
  volatile uint8_t head_ = 0;
  volatile uint8_t tail_ = 0;
  uint8_t stored_ = 0;  // stored and not yet published
};

}  // namespace opjoule

#endif  // OPJOULE_LINK_TRANSMIT_RING_H_
