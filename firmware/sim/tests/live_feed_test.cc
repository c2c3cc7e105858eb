#include "signal/live_feed.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "errors.h"
#include "signal/course.h"
#include "signal/csv.h"
#include "tests/temporary_file.h"

namespace opjoule::rig {
namespace {

TEST_CASE("a live feed builds the profile from lines in any portions") {
  LiveFeed feed;
  feed.take("p 1000000000 0.5 5\np 15000");
  CHECK(feed.profile().size() == 1);
  feed.take("00000 1 5\nw 2000000000\n");
  CHECK(feed.profile().size() == 2);
  CHECK(feed.epoch_ns() == 1'000'000'000);
  CHECK(feed.watermark_ns() == 2'000'000'000);
  CHECK(feed.profile().until(feed.profile_s(2'000'000'000)).charge_c == doctest::Approx(0.75));
  CHECK_FALSE(feed.ended());
  feed.take("q\n");
  CHECK(feed.ended());
}

TEST_CASE("edges come out in order of time, whatever order they came in") {
  LiveFeed feed;
  feed.take("e 30 1\ne 10 1\ne 20 0\n");
  REQUIRE(feed.edges().size() == 3);
  CHECK(feed.edges()[0].board_ns == 10);
  CHECK(feed.edges()[1].board_ns == 20);
  CHECK_FALSE(feed.edges()[1].level);
  CHECK(feed.edges()[2].board_ns == 30);
}

TEST_CASE("a row whose time is already simulated is counted and left out") {
  LiveFeed feed;
  feed.take("p 100 1 5\n");
  feed.simulated_until(1000);
  feed.take("p 999 2 5\ne 500 1\np 1000 3 5\n");
  CHECK(feed.late_rows() == 2);
  CHECK(feed.profile().size() == 2);
  CHECK(feed.edges().empty());
}

TEST_CASE("the watermark never goes back") {
  LiveFeed feed;
  feed.take("w 20\nw 10\n");
  CHECK(feed.watermark_ns() == 20);
}

TEST_CASE("a malformed line is an error that shows the line") {
  for (const char* line : {"x 1\n", "p 1 2\n", "p 1 a 5\n", "p 1 nan 5\n", "p -1 1 5\n", "e 1 2\n",
                           "w\n", "w 1.5\n", "q 1\n"}) {
    LiveFeed feed;
    CHECK_THROWS_AS(feed.take(line), RigError);
  }
}

TEST_CASE("a course keeps every digit of the energy") {
  const TemporaryFile file("");
  LiveFeed feed;
  Course course(file.path(), feed);
  feed.take("p 1000000000 0.7 1.1\n");
  const double energy_j = feed.profile().until(10.0 / 3).energy_j;
  course.finish(10.0 / 3);
  const auto rows = read_csv(file.path(), {"board_ns", "energy_j"});
  REQUIRE(!rows.empty());
  CHECK(rows.back()[0] == 4333333333);
  CHECK(rows.back()[1] == energy_j);
}

TEST_CASE("a course bends where the newest row begins") {
  const TemporaryFile file("");
  LiveFeed feed;
  Course course(file.path(), feed);
  feed.take("p 1000000000 0.5 5\np 2000000000 2 5\n");
  course.finish(1.5);
  const auto rows = read_csv(file.path(), {"board_ns", "energy_j"});
  REQUIRE(rows.size() == 3);
  CHECK(rows[1][0] == 2e9);
  CHECK(rows[1][1] == doctest::Approx(2.5));
  CHECK(rows[2][1] == doctest::Approx(7.5));
}

TEST_CASE("a course leaves out rows, and is within its tolerance of the energy at each of them") {
  const TemporaryFile file("");
  LiveFeed feed, whole;
  Course course(file.path(), feed);
  for (int row = 0; row < 4000; ++row) {
    const double current_a = row < 1000 || row >= 3000 ? 0.6 : 0.7 + 0.01 * (row * 7919 % 13);
    const std::string line = "p " + std::to_string(1'000'000'000 + row * 250'000LL) + " " +
                             std::to_string(current_a) + " 5\n";
    feed.take(line);
    whole.take(line);
  }
  course.finish(1.0);
  const auto rows = read_csv(file.path(), {"board_ns", "energy_j"});
  CHECK(rows.size() < 2000);
  CHECK(rows.size() > 4);
  std::size_t next = 1;
  for (int row = 0; row <= 4000; ++row) {
    const double board_ns = 1e9 + row * 250'000.0;
    while (rows[next][0] < board_ns) ++next;
    const auto &before = rows[next - 1], &after = rows[next];
    const double part = (board_ns - before[0]) / (after[0] - before[0]);
    const double energy_j = before[1] + part * (after[1] - before[1]);
    CHECK(std::abs(energy_j - whole.profile().until(row * 250e-6).energy_j) <=
          Course::kToleranceJ * 1.0001);
  }
}

}  // namespace
}  // namespace opjoule::rig
