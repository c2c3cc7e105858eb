#include "workload/zipfian.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace opjoule {
namespace {

double direct_zeta(uint64_t n, double theta) {
  double sum = 0;
  for (uint64_t i = n; i >= 1; --i) sum += std::pow(static_cast<double>(i), -theta);
  return sum;
}

TEST_CASE("zeta agrees with the direct sum") {
  for (const double theta : {0.5, 0.99, 1.0, 1.2})
    for (const uint64_t n : {1u, 2u, 999u, 1000u, 1001u, 5000u, 300000u})
      CHECK(zeta(n, theta) == doctest::Approx(direct_zeta(n, theta)).epsilon(1e-13));
}

TEST_CASE("YCSB's own constant for 10^10 items is near the sum over them") {
  CHECK(zeta(10'000'000'000, 0.99) == doctest::Approx(YcsbZipfian::kScrambledZeta).epsilon(1e-9));
}

TEST_CASE("a draw is the one YCSB's formula gives with pow()") {
  const double theta = 0.99;
  const double alpha = 1 / (1 - theta);
  const double zeta_2 = 1 + std::pow(0.5, theta);
  for (const uint64_t items : {YcsbZipfian::kScrambledItems, uint64_t{1000}, uint64_t{999'999}}) {
    const double sum = items == YcsbZipfian::kScrambledItems ? YcsbZipfian::kScrambledZeta
                                                             : direct_zeta(items, theta);
    const double n = static_cast<double>(items);
    const double eta = (1 - std::pow(2.0 / n, 1 - theta)) / (1 - zeta_2 / sum);
    const YcsbZipfian zipfian(items, sum);
    Random random(7, 0);
    double most = 0;
    double least = 0;
    for (int i = 0; i < 100'000; ++i) {
      const double u = random.unit();
      double expected = n * std::pow(eta * u - eta + 1, alpha);
      if (u * sum < zeta_2) expected = u * sum < 1 ? 0 : 1;
      const double drawn = static_cast<double>(zipfian.draw(u));
      // Below the true value by less than the part that is cut off, and the rounding of both
      // powers.
      const double difference = expected - drawn;
      most = std::max(most, difference);
      least = std::min(least, difference);
    }
    CHECK(most <= 1 + 1e-12 * n);
    CHECK(least >= -1e-12 * n);
  }
}

TEST_CASE("growing gives the sum of the larger number of items") {
  YcsbZipfian grown(1000);
  grown.grow(1500);
  const YcsbZipfian other(1000,
                          zeta(1500, 0.99));  // eta keeps the first number of items, as in YCSB
  int different = 0;
  for (int i = 0; i < 1000; ++i) {
    const double u = (i + 0.5) / 1000;
    const double shrunk = static_cast<double>(grown.draw(u)) * 1000 / 1500;
    if (std::abs(shrunk - static_cast<double>(other.draw(u))) > 1) ++different;
  }
  CHECK(different == 0);
}

TEST_CASE("grown from no item it draws the first items alone, as Java's cast of NaN to 0 does") {
  YcsbZipfian grown(0);
  grown.grow(1000);
  for (const double u : {0.0, 0.1, 0.3, 0.5, 0.999}) CHECK(grown.draw(u) <= 1);
}

TEST_CASE("the exact Zipf distribution has the shares its definition gives") {
  constexpr uint64_t kRanks = 1000;
  constexpr int kDraws = 1'000'000;
  for (const double theta : {0.5, 0.99, 1.0, 1.5}) {
    const TrueZipfian zipfian(kRanks, theta);
    Random random(11, 0);
    std::vector<double> seen(kRanks + 1);
    for (int i = 0; i < kDraws; ++i) ++seen[zipfian.draw(random)];
    CHECK(seen[0] == 0);
    const double sum = zeta(kRanks, theta);
    double chi_square = 0;
    for (uint64_t rank = 1; rank <= kRanks; ++rank) {
      const double expected = kDraws * std::pow(static_cast<double>(rank), -theta) / sum;
      chi_square += (seen[rank] - expected) * (seen[rank] - expected) / expected;
    }
    // 999 degrees of freedom: mean 999, standard deviation 44.7; five of them.
    CHECK(chi_square < 999 + 5 * 44.7);
  }
}

TEST_CASE("one item, and two, can be drawn from") {
  Random random(1, 0);
  const TrueZipfian single(1, 0.99);
  const YcsbZipfian one(1);
  const YcsbZipfian two(2);
  for (int i = 0; i < 100; ++i) {
    CHECK(single.draw(random) == 1);
    CHECK(one.draw(random) == 0);
    CHECK(two.draw(random) <= 1);
  }
}

}  // namespace
}  // namespace opjoule
