// CRC-16/IBM-3740 (poly 0x1021, init 0xFFFF, no reflection, no final xor; check value 0x29B1), the
// same as Python's binascii.crc_hqx(data, 0xFFFF). Pure functions: safe in interrupts.
#ifndef OPJOULE_PROTOCOL_CRC16_H_
#define OPJOULE_PROTOCOL_CRC16_H_

#include <stdint.h>

#ifdef __AVR__
#include <util/crc16.h>
#endif

namespace opjoule {
namespace protocol {

constexpr uint16_t kCrcInit = 0xFFFF;

inline uint16_t crc16_update(uint16_t crc, uint8_t byte) {
#ifdef __AVR__
  return _crc_xmodem_update(crc, byte);  // the same polynomial; avr-libc's is about 20 cycles
#else
  // Byte-wise without a table, after the shift-and-xor form of avr-libc's own documentation.
  uint8_t x = static_cast<uint8_t>((crc >> 8) ^ byte);
  x = static_cast<uint8_t>(x ^ (x >> 4));
  return static_cast<uint16_t>((crc << 8) ^ (static_cast<uint16_t>(x) << 12) ^
                               (static_cast<uint16_t>(x) << 5) ^ x);
#endif
}

}  // namespace protocol
}  // namespace opjoule

#endif  // OPJOULE_PROTOCOL_CRC16_H_
