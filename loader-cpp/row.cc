#include "loader/row.h"

#include <cstring>
#include <numeric>
#include <vector>

namespace opjoule {
namespace {

constexpr char kAny = 1;

template <typename Int>
Int load(const char* from) {
  Int value;
  std::memcpy(&value, from, sizeof value);  // every board we build for is little endian
  return value;
}

template <typename Int>
void store(char* to, Int value) {
  std::memcpy(to, &value, sizeof value);
}

bool is_even(std::span<const uint16_t> field_numbers, std::span<const uint32_t> lengths) {
  if (field_numbers.empty()) return false;
  for (size_t i = 0; i < field_numbers.size(); ++i)
    if (field_numbers[i] != i || lengths[i] != lengths[0]) return false;
  return true;
}

[[gnu::cold, gnu::noinline]] Status corrupt(size_t size, const std::string& what) {
  return {StatusCode::kCorrupt, "stored record of " + std::to_string(size) + " bytes " + what};
}

}  // namespace

uint32_t Row::length(size_t i) const {
  return even_ ? even_length_ : load<uint32_t>(buffer_.data() + kHeaderBytes + i * kEntryBytes + 4);
}

void Row::reset(std::span<const uint16_t> field_numbers, std::span<const uint32_t> lengths) {
  if (is_even(field_numbers, lengths) && reset_even(field_numbers.size(), lengths[0])) return;
  field_count_ = field_numbers.size();
  even_ = false;
  value_bytes_ = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  buffer_.resize(values_offset() + value_bytes_);
  char* out = buffer_.data();
  out[0] = kAny;
  out[1] = 0;
  store(out + 2, static_cast<uint16_t>(field_count_));
  out += kHeaderBytes;
  for (size_t i = 0; i < field_count_; ++i, out += kEntryBytes) {
    store(out, static_cast<uint32_t>(field_numbers[i]));
    store(out + 4, lengths[i]);
  }
}

Status Row::assign(std::string_view stored) {
  buffer_.assign(stored);
  return parse();
}

Status Row::contradicts(size_t count, size_t each) {
  field_count_ = 0;
  even_ = false;
  value_bytes_ = 0;
  return corrupt(buffer_.size(), "says of itself that it has " + std::to_string(count) +
                                     " fields of " + std::to_string(each) + " bytes");
}

Status Row::parse_other() {
  const char* in = buffer_.data();
  field_count_ = 0;
  even_ = false;
  value_bytes_ = 0;
  if (buffer_.size() >= kHeaderBytes && in[0] == kAny && in[1] == 0) return parse_any();
  return corrupt(buffer_.size(), "does not start with record format 1 or 3");
}

Status Row::parse_any() {
  const size_t count = load<uint16_t>(buffer_.data() + 2);
  uint64_t total = kHeaderBytes + count * kEntryBytes;
  if (total > buffer_.size())
    return corrupt(buffer_.size(), "is too short for its " + std::to_string(count) + " fields");
  for (size_t i = 0; i < count; ++i) total += length(i);
  if (total != buffer_.size())
    return corrupt(buffer_.size(), "has fields that add up to " + std::to_string(total));
  field_count_ = count;
  value_bytes_ = total - values_offset();
  return Status::ok();
}

void Row::merge(const Row& changed) {
  // The usual one: a whole row, all values of one length.
  if (even_ && changed.even_ && field_count_ == changed.field_count_ &&
      even_length_ == changed.even_length_) {
    std::memcpy(buffer_.data() + kHeaderBytes, changed.buffer_.data() + kHeaderBytes,
                buffer_.size() - kHeaderBytes);
    return;
  }
  bool same_shape = true;
  for (size_t i = 0; i < changed.field_count(); ++i) {
    const std::string_view value = changed.value(i);
    if (find(changed.field_number(i)).data() == nullptr ||
        find(changed.field_number(i)).size() != value.size())
      same_shape = false;
  }
  if (same_shape) {
    for (size_t i = 0; i < changed.field_count(); ++i) {
      const std::string_view value = changed.value(i);
      const std::string_view mine = find(changed.field_number(i));
      std::memcpy(buffer_.data() + (mine.data() - buffer_.data()), value.data(), value.size());
    }
    return;
  }
  Row merged;
  std::vector<uint16_t> numbers;
  std::vector<uint32_t> lengths;
  std::string values;
  auto append = [&](uint16_t number, std::string_view value) {
    numbers.push_back(number);
    lengths.push_back(static_cast<uint32_t>(value.size()));
    values.append(value);
  };
  for (size_t i = 0; i < field_count_; ++i) {
    const std::string_view replacement = changed.find(field_number(i));
    append(field_number(i), replacement.data() != nullptr ? replacement : value(i));
  }
  for (size_t i = 0; i < changed.field_count(); ++i)
    if (find(changed.field_number(i)).data() == nullptr)
      append(changed.field_number(i), changed.value(i));
  merged.reset(numbers, lengths);
  std::memcpy(merged.mutable_values().data(), values.data(), values.size());
  *this = std::move(merged);
}

uint16_t Row::any_field_number(size_t i) const {
  return load<uint16_t>(buffer_.data() + kHeaderBytes + i * kEntryBytes);
}

std::string_view Row::any_value(size_t i) const {
  size_t offset = values_offset();
  for (size_t before = 0; before < i; ++before) offset += length(before);
  return {buffer_.data() + offset, length(i)};
}

std::span<char> Row::mutable_value(size_t i) {
  const std::string_view view = value(i);
  return {buffer_.data() + (view.data() - buffer_.data()), view.size()};
}

std::string_view Row::find(uint16_t number) const {
  if (even_) return number < field_count_ ? value(number) : std::string_view();
  size_t offset = values_offset();
  for (size_t i = 0; i < field_count_; ++i) {
    if (field_number(i) == number) return {buffer_.data() + offset, length(i)};
    offset += length(i);
  }
  return {};
}

}  // namespace opjoule
