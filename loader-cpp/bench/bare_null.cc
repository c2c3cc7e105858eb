// No database: what a plain loop takes to make YCSB's keys and the values of a row, written the
// obvious way with the standard library. Here the making is what is measured, so keys and values
// are made inside the loop.
#include <cmath>
#include <cstring>
#include <random>

#include "bench/bare.h"
#include "workload/zipfian.h"

namespace opjoule {
namespace {

uint64_t fnv(uint64_t number) {
  uint64_t hash = 0xcbf29ce484222325;
  for (int i = 0; i < 8; ++i, number >>= 8) hash = (hash ^ (number & 0xff)) * 0x100000001b3;
  return static_cast<uint64_t>(std::llabs(static_cast<long long>(hash)));
}

// Keeps the compiler from dropping what is computed.
void use(const char* data) { asm volatile("" : : "r"(data) : "memory"); }

// YCSB's Zipfian inversion with pow().
class PlainZipfian {
 public:
  uint64_t draw(double u) const {
    if (u * kZeta < 1) return 0;
    if (u * kZeta < second_) return 1;
    return static_cast<uint64_t>(kItems * std::pow(eta_ * u - eta_ + 1, 1 / (1 - 0.99)));
  }

 private:
  static constexpr double kItems = static_cast<double>(YcsbZipfian::kScrambledItems);
  static constexpr double kZeta = YcsbZipfian::kScrambledZeta;
  double second_ = 1 + std::pow(0.5, 0.99);
  double eta_ = (1 - std::pow(2.0 / kItems, 1 - 0.99)) / (1 - second_ / kZeta);
};

}  // namespace

BareResult bare_null(const BareRequest& request) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit;
  const PlainZipfian zipfian;
  std::string key;
  std::string value(request.value_bytes, '\0');
  if (request.phase == BarePhase::kLoad)
    return timed_loop(request, [&](uint64_t i) -> uint64_t {
      key = "user" + std::to_string(fnv(i));
      for (size_t at = 0; at + 8 <= value.size(); at += 8) {
        const uint64_t word = (random() & 0x3f3f3f3f3f3f3f3f) + 0x2020202020202020;
        std::memcpy(value.data() + at, &word, 8);
      }
      use(key.data());
      use(value.data());
      return 0;
    });
  return timed_loop(request, [&](uint64_t) -> uint64_t {
    key = "user" + std::to_string(fnv(fnv(zipfian.draw(unit(random))) % request.rows));
    use(key.data());
    return 0;
  });
}

}  // namespace opjoule
