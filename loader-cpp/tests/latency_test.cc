#include "workload/latency.h"

#include <doctest/doctest.h>

#include <utility>

namespace opjoule {
namespace {

TEST_CASE("quantiles are within 0.4 % of the values recorded") {
  for (int64_t value = 1; value < int64_t{1} << 43; value = value * 5 / 4 + 1) {
    LatencyHistogram latency;
    latency.add(value);
    latency.add(int64_t{1} << 43);  // so that the maximum does not cut the estimate
    CHECK(latency.quantile_ns(0.5) == doctest::Approx(static_cast<double>(value)).epsilon(0.004));
  }
}

TEST_CASE("mean and maximum are exact, merging adds") {
  LatencyHistogram a;
  LatencyHistogram b;
  for (int i = 1; i <= 100; ++i) (i % 2 == 0 ? a : b).add(i * 1000);
  a.merge(b);
  CHECK(a.count() == 100);
  CHECK(a.mean_ns() == 50'500);
  CHECK(a.maximum_ns() == 100'000);
  CHECK(a.quantile_ns(0) == doctest::Approx(1'000).epsilon(0.004));
  CHECK(a.quantile_ns(0.5) == doctest::Approx(50'000).epsilon(0.005));
  CHECK(a.quantile_ns(0.99) == doctest::Approx(99'000).epsilon(0.005));
  CHECK(a.quantile_ns(1) <= 100'000);
}

TEST_CASE("nothing recorded gives zeros; absurd values stay inside") {
  LatencyHistogram latency;
  CHECK(latency.quantile_ns(0.5) == 0);
  CHECK(latency.mean_ns() == 0);
  latency.add(INT64_MAX);
  latency.add(-1);
  CHECK(latency.count() == 2);
  CHECK(latency.maximum_ns() == INT64_MAX);
  CHECK(latency.mean_ns() == doctest::Approx(INT64_MAX / 2.0));
}

TEST_CASE("copied and merged histograms take further values") {
  LatencyHistogram first;
  first.add(5);
  LatencyHistogram second = std::move(first);
  LatencyHistogram third;
  third.merge(second);
  for (LatencyHistogram* each : {&first, &second, &third}) {
    each->add(3);
    each->add(9);
    CHECK(each->count() == 3);
    CHECK(each->mean_ns() == doctest::Approx(17.0 / 3));
    CHECK(each->maximum_ns() == 9);
  }
}

}  // namespace
}  // namespace opjoule
