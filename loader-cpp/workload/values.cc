#include "workload/values.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace opjoule {
namespace {

// YCSB draws six characters at a time, masked with 31, 63, 95, 31, 63, 95.
constexpr uint8_t kMasks[6] = {31, 63, 95, 31, 63, 95};

// 64 characters, so that a cut anywhere still reads as text.
constexpr std::string_view kPhrase =
    "the board slept, the meter counted what the sleeping board drew ";

}  // namespace

ValueBytes::ValueBytes(uint64_t seed, uint32_t stream, ValueCharacters characters,
                       double compress_ratio, std::shared_ptr<const std::string> text)
    : compress_ratio_(compress_ratio),
      text_(std::move(text)),
      places_(seed ^ 0x706c61636573, stream) {
  Random random(seed ^ 0x76616c7565733a29, stream);  // apart from the stream that draws operations
  for (int lane = 0; lane < 4; ++lane) {
    s0_[lane] = random.next();
    s1_[lane] = random.next() | 1;  // never all zero
  }
  const bool printable = characters == ValueCharacters::kPrintable;
  uint8_t bytes[sizeof masks_];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = printable ? kMasks[i % 6] : 0xff;
  std::memcpy(masks_, bytes, sizeof bytes);
  for (int lane = 0; lane < 4; ++lane) offset_[lane] = printable ? 0x2020202020202020 : 0;
}

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
// Chosen at run time: with registers of 32 bytes it takes half the time. (On aarch64 the default is
// as good as any. The thread sanitizer is not ready when the choice is made; clang wants the
// attribute where the class is.)
__attribute__((target_clones("avx2", "default")))
#endif
void ValueBytes::fill_random(std::span<char> out) {
  char* at = out.data();
  size_t left = out.size();
  Lanes s0 = s0_;
  Lanes s1 = s1_;
  const auto next = [&s0, &s1](Lanes& word) {
    Lanes x = s0;
    s0 = s1;
    x ^= x << 23;
    word = s1;
    s1 = x ^ s1 ^ (x >> 18) ^ (s1 >> 5);
    word += s1;
  };
  for (; left >= sizeof masks_; left -= sizeof masks_, at += sizeof masks_) {
    for (size_t i = 0; i < 3; ++i) {
      // No carry between bytes: a mask of at most 95 and 32 stay below 128.
      Lanes word;
      next(word);
      word = (word & masks_[i]) + offset_;
      std::memcpy(at + i * sizeof word, &word, sizeof word);
    }
  }
  for (size_t i = 0; left > 0; ++i) {
    Lanes word;
    next(word);
    word = (word & masks_[i]) + offset_;
    const size_t part = std::min(left, sizeof word);
    std::memcpy(at, &word, part);
    at += part;
    left -= part;
  }
  s0_ = s0;
  s1_ = s1;
}

void ValueBytes::fill(std::span<char> out) {
  if (text_ != nullptr) {
    size_t from = static_cast<size_t>(places_.below(text_->size()));
    for (size_t at = 0; at < out.size(); from = 0) {
      const size_t part = std::min(out.size() - at, text_->size() - from);
      std::memcpy(out.data() + at, text_->data() + from, part);
      at += part;
    }
    return;
  }
  const size_t random =
      static_cast<size_t>(static_cast<double>(out.size()) * compress_ratio_ + 0.5);
  fill_random(out.first(random));
  for (size_t at = random; at < out.size();) {
    const size_t part = std::min(out.size() - at, kPhrase.size());
    std::memcpy(out.data() + at, kPhrase.data(), part);
    at += part;
  }
}

void deterministic_value(std::string_view key, std::string_view field, std::span<char> out) {
  size_t length = 0;
  uint32_t hash = 0;
  // Java hashes the whole string each time; but its hash extends by one character at a time, so
  // that one pass is enough.
  const auto append = [&](std::string_view text) {
    for (const char c : text) {
      hash = hash * 31 + static_cast<unsigned char>(c);
      if (length < out.size()) out[length] = c;
      ++length;
    }
  };
  append(key);
  append(":");
  append(field);
  while (length < out.size()) {
    append(":");
    char text[16];
    const auto end = std::to_chars(text, text + sizeof text, static_cast<int32_t>(hash)).ptr;
    append({text, static_cast<size_t>(end - text)});
  }
}

}  // namespace opjoule
