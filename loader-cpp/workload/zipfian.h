// The Zipf distributions: YCSB's (an approximation, reproduced as it is) and an exact one.
//
// Thread safety: none; each thread has its own.
#pragma once

#include <cstdint>

#include "loader/random.h"

namespace opjoule {

// sum of 1 / i^theta for i = 1..n, to about 1e-14 relative: direct for the first terms,
// Euler-Maclaurin for the rest.
double zeta(uint64_t n, double theta);

// YCSB's ZipfianGenerator over 0..items-1: the inversion of Gray et al., "Quickly generating
// billion-record synthetic databases", SIGMOD 1994, with theta 0.99.
class YcsbZipfian {
 public:
  static constexpr double kTheta = 0.99;
  // YCSB's ScrambledZipfianGenerator: 10^10 + 1 items, and this sum in place of theirs.
  static constexpr uint64_t kScrambledItems = 10'000'000'001;
  static constexpr double kScrambledZeta = 26.46902820178302;

  explicit YcsbZipfian(uint64_t items) : YcsbZipfian(items, zeta(items, kTheta)) {}
  YcsbZipfian(uint64_t items, double zeta_items);

  uint64_t draw(Random& random) const { return draw(random.unit()); }
  // The item for u in [0, 1). Grown from 1 item it may be `items` or more, as in YCSB.
  [[nodiscard]] uint64_t draw(double u) const;
  // Raises the number of items as YCSB does while rows are inserted: the sum grows, and eta with
  // it, but eta keeps the first number of items in its numerator.
  void grow(uint64_t items);

 private:
  void set_eta();

  uint64_t first_items_;
  uint64_t items_;
  double second_;  // zeta(2)
  double zeta_;
  double eta_ = 0;
};

// Exactly P(k) = (1/k^theta) / zeta(n) over ranks 1..n, by rejection-inversion: Hoermann,
// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
// TOMACS 6, 1996.
class TrueZipfian {
 public:
  // theta > 0, n >= 1.
  TrueZipfian(uint64_t n, double theta);
  // A rank from 1 to n.
  uint64_t draw(Random& random) const;

 private:
  [[nodiscard]] double integral(double x) const;
  [[nodiscard]] double integral_inverse(double x) const;
  [[nodiscard]] double density(double x) const;

  double n_;
  double theta_;
  double integral_first_;
  double integral_last_;
  double shortcut_;
};

}  // namespace opjoule
