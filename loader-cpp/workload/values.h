// The bytes of values: random as YCSB's, partly compressible, or derived from the key so that a
// read can verify them.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loader/random.h"

namespace opjoule {

// Which characters random values are made of.
enum class ValueCharacters {
  kPrintable,  // the same sets as YCSB's RandomByteIterator: 32, 64 and 64 characters in turn, from
               // ' ' up
  kAny,        // all 256 byte values
};

class ValueBytes {
 public:
  // compress_ratio in [0, 1]: the share of each value that is random; the rest repeats a phrase of
  // English text, which any compressor shrinks to little. With `text` each value is a piece of it,
  // from a random place on, and begins again at its end.
  ValueBytes(uint64_t seed, uint32_t stream, ValueCharacters characters, double compress_ratio,
             std::shared_ptr<const std::string> text = nullptr);

  // Random bytes over the whole span, which may be several values back to back.
  void fill_random(std::span<char> out);
  // One value: random for its first part, text for the rest.
  void fill(std::span<char> out);
  [[nodiscard]] bool compressible() const { return compress_ratio_ < 1 || text_ != nullptr; }

 private:
  typedef uint64_t Lanes __attribute__((vector_size(32)));

  // xorshift128+ (Vigna, "Further scramblings of Marsaglia's xorshift generators", 2017) in four
  // lanes: shifts, adds and xors alone, which every vector unit has.
  Lanes s0_;
  Lanes s1_;
  Lanes masks_[3];
  Lanes offset_;
  double compress_ratio_;
  std::shared_ptr<const std::string> text_;
  Random places_;
};

// YCSB's value under dataintegrity: "key:field", then ":" and Java's String.hashCode of what is
// there so far, repeated, cut to `size`. Source: CoreWorkload.buildDeterministicValue.
void deterministic_value(std::string_view key, std::string_view field, std::span<char> out);

}  // namespace opjoule
