// The workload's random numbers: xoshiro256++ (Blackman, Vigna, "Scrambled linear pseudorandom
// number generators", ACM TOMS 47, 2021), seeded through splitmix64. Stream t of a seed starts t *
// 2^128 draws after stream 0, so the streams of one run's threads never overlap.
//
// Thread safety: none; each thread has its own stream.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "loader/wide_product.h"

namespace opjoule {

class Random {
 public:
  Random(uint64_t seed, uint32_t stream) {
    for (uint64_t& word : state_) word = split_mix(seed);
    for (uint32_t i = 0; i < stream; ++i) jump();
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1), 53 random bits.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Uniform in [0, n), n > 0. The bias is below n / 2^64.
  uint64_t below(uint64_t n) { return multiply_high(next(), n); }

 private:
  static uint64_t split_mix(uint64_t& state) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // 2^128 draws ahead.
  void jump() {
    constexpr std::array<uint64_t, 4> kPolynomial{0x180ec6d33cfd0aba, 0xd5a61266f0c9392c,
                                                  0xa9582618e03fc9aa, 0x39abdc4529b1661c};
    std::array<uint64_t, 4> ahead{};
    for (const uint64_t word : kPolynomial) {
      for (int bit = 0; bit < 64; ++bit) {
        if (word >> bit & 1)
          for (size_t i = 0; i < 4; ++i) ahead[i] ^= state_[i];
        next();
      }
    }
    state_ = ahead;
  }

  std::array<uint64_t, 4> state_{};
};

}  // namespace opjoule
