#include "loader/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace opjoule {
namespace {

TEST_CASE("the same seed and stream draw the same, others differ") {
  Random a(1, 0);
  Random same(1, 0);
  Random other_seed(2, 0);
  Random other_stream(1, 1);
  for (int i = 0; i < 100; ++i) {
    const uint64_t word = a.next();
    CHECK(word == same.next());
    CHECK(word != other_seed.next());
    CHECK(word != other_stream.next());
  }
}

TEST_CASE("draws below a bound fill it evenly") {
  Random random(3, 0);
  std::vector<int> seen(10);
  for (int i = 0; i < 100'000; ++i) ++seen[random.below(10)];
  for (const int count : seen)
    CHECK(std::abs(count - 10'000) < 5 * 95);  // five standard deviations
}

TEST_CASE("unit draws stay in [0, 1)") {
  Random random(4, 0);
  double sum = 0;
  double least = 1;
  double most = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double u = random.unit();
    least = std::min(least, u);
    most = std::max(most, u);
    sum += u;
  }
  CHECK(least >= 0);
  CHECK(most < 1);
  CHECK(sum / 100'000 == doctest::Approx(0.5).epsilon(0.01));
}

}  // namespace
}  // namespace opjoule
