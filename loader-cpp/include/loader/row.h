// A YCSB row: numbered fields "field0".."fieldN" in one contiguous buffer, laid out as the
// key-value engines store it: they write it without another copy, and the SQL engines bind slices
// of it.
//
// Stored layout, all integers little endian:
//   even   u8 format (3) | u8 field count | u16 length | values
//   any    u8 format (1) | u8 reserved (0) | u16 field count | field count x { u16 field number |
//          u16 reserved | u32 length } | values
// Values follow in the same order, back to back. Up to 255 fields 0, 1, 2, ... of one length, at
// most 65,535 B, are stored as even, all others as any. A row of one field of 1,000 B therefore
// takes 1,004 B, and so does one of ten fields of 100 B.
//
// Thread safety: none; each thread owns its rows and reuses them, so that no operation
// allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

class Row {
 public:
  // Starts a new row with these fields and sizes; the values are left unset for fill().
  void reset(std::span<const uint16_t> field_numbers, std::span<const uint32_t> lengths);
  // The same for the fields 0 to `field_count` - 1 with values of one length. False, with nothing
  // changed, where they are too many or too long for the even layout.
  bool reset_even(size_t field_count, size_t length);

  // Takes stored bytes as they are (copied). kCorrupt where the layout contradicts itself.
  Status assign(std::string_view stored);
  // The buffer, for an engine that can read straight into it; then parse().
  std::string& buffer() {
    even_ = false;  // until then
    return buffer_;
  }
  Status parse();

  // Overwrites (or appends) each field of `changed`, as an update of some fields does to a stored
  // row.
  void merge(const Row& changed);

  [[nodiscard]] size_t field_count() const { return field_count_; }
  [[nodiscard]] uint16_t field_number(size_t i) const {
    return even_ ? static_cast<uint16_t>(i) : any_field_number(i);
  }
  [[nodiscard]] std::string_view value(size_t i) const {
    if (!even_) return any_value(i);
    return {buffer_.data() + kHeaderBytes + i * even_length_, even_length_};
  }
  [[nodiscard]] std::span<char> mutable_value(size_t i);
  // All values, back to back: filled in one go where they are random bytes.
  [[nodiscard]] std::span<char> mutable_values();
  // The value of field `number`, or an empty view with data() == nullptr.
  [[nodiscard]] std::string_view find(uint16_t number) const;
  [[nodiscard]] std::string_view stored() const { return buffer_; }
  // Bytes of all values, without layout.
  [[nodiscard]] uint64_t value_bytes() const { return value_bytes_; }

 private:
  std::string buffer_;
  size_t field_count_ = 0;
  bool even_ = false;
  uint32_t even_length_ = 0;  // of every value, where even_
  uint64_t value_bytes_ = 0;

  static constexpr char kEven = 3;
  static constexpr size_t kMostEvenFields = UINT8_MAX;
  static constexpr size_t kLongestEven = UINT16_MAX;
  static constexpr size_t kHeaderBytes = 4;
  static constexpr size_t kEntryBytes = 8;
  [[nodiscard]] size_t values_offset() const {
    return even_ ? kHeaderBytes : kHeaderBytes + field_count_ * kEntryBytes;
  }
  [[nodiscard]] uint32_t length(size_t i) const;
  [[nodiscard]] uint16_t any_field_number(size_t i) const;
  [[nodiscard]] std::string_view any_value(size_t i) const;
  [[gnu::cold, gnu::noinline]] Status contradicts(size_t count, size_t each);
  [[gnu::noinline]] Status parse_other();
  Status parse_any();
};

// Inline, since every read of a key-value engine ends with it.
inline Status Row::parse() {
  const char* in = buffer_.data();
  if (buffer_.size() < kHeaderBytes || in[0] != kEven) [[unlikely]]
    return parse_other();
  const size_t count = static_cast<uint8_t>(in[1]);
  uint16_t each;
  std::memcpy(&each, in + 2, sizeof each);  // every board we build for is little endian
  if (count == 0 || kHeaderBytes + each * count != buffer_.size()) [[unlikely]]
    return contradicts(count, each);
  even_ = true;
  even_length_ = each;
  field_count_ = count;
  value_bytes_ = each * count;
  return Status::ok();
}

// Inline, since every read of SQLite makes its row with these.
inline bool Row::reset_even(size_t field_count, size_t length) {
  const size_t size = kHeaderBytes + field_count * length;
  if (even_ && field_count_ == field_count && buffer_.size() == size) [[likely]]
    return true;  // as the row before
  if (field_count == 0 || field_count > kMostEvenFields || length > kLongestEven) return false;
  field_count_ = field_count;
  value_bytes_ = field_count * length;
  even_ = true;
  even_length_ = static_cast<uint32_t>(length);
  buffer_.resize(size);
  const auto each = static_cast<uint16_t>(length);
  char* out = buffer_.data();
  out[0] = kEven;
  out[1] = static_cast<char>(field_count);
  std::memcpy(out + 2, &each, sizeof each);  // every board we build for is little endian
  return true;
}

inline std::span<char> Row::mutable_values() {
  return {buffer_.data() + values_offset(), value_bytes_};
}

}  // namespace opjoule
