#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "signal/sync_edges.h"
#include "signal/truth.h"
#include "tests/temporary_file.h"

namespace opjoule::rig {
namespace {

TEST_CASE("the sync line starts low and a repeated level is no edge") {
  const TemporaryFile file("time_s,level\n0,0\n1,1\n1.5,1\n2,0\n");
  const auto edges = read_sync_edges(file.path());
  REQUIRE(edges.size() == 2);
  CHECK(edges[0].time_s == 1);
  CHECK(edges[0].level);
  CHECK(edges[1].time_s == 2);
  CHECK_FALSE(edges[1].level);
}

TEST_CASE("edges with another level or going back in time are refused") {
  const TemporaryFile level("0,2\n"), order("1,1\n0.5,0\n");
  CHECK_THROWS_AS(read_sync_edges(level.path()), RigError);
  CHECK_THROWS_AS(read_sync_edges(order.path()), RigError);
}

TEST_CASE("the truth gives the total and the energy between edges") {
  Profile profile;
  profile.add(0, 1, 5);
  profile.add(2, 2, 5);
  profile.end_at(4);
  Truth truth(profile);
  truth.edge(1);
  truth.edge(3);
  const auto json = truth.to_json(4);
  CHECK(json["schema"] == nlohmann::json{{"name", "rig-sim-truth"}, {"version", 1}});
  CHECK(json["duration_s"] == 4);
  CHECK(json["total_j"] == 30);
  CHECK(json["total_c"] == 6);
  REQUIRE(json["intervals"].size() == 1);
  CHECK(json["intervals"][0]["start_s"] == 1);
  CHECK(json["intervals"][0]["end_s"] == 3);
  CHECK(json["intervals"][0]["energy_j"] == 15);
}

TEST_CASE("a truth that starts in mid-profile counts from there") {
  Profile profile;
  profile.add(0, 1, 5);
  Truth truth(profile, 10);
  truth.edge(11);
  truth.edge(12);
  const auto json = truth.to_json(14);
  CHECK(json["duration_s"] == 4);
  CHECK(json["total_j"] == 20);
  CHECK(json["intervals"][0] ==
        nlohmann::ordered_json{{"start_s", 1.0}, {"end_s", 2.0}, {"energy_j", 5.0}});
}

TEST_CASE("a truth in its file keeps every digit, and what is not finite is null") {
  const TemporaryFile file("");
  const double third = 1.0 / 3;
  write_json({{"third", third}, {"none", std::nan("")}}, file.path());
  const auto read = nlohmann::json::parse(std::ifstream(file.path()));
  CHECK(read["third"] == third);
  CHECK(read["none"].is_null());
}

TEST_CASE("a truth that cannot be written is an error") {
  CHECK_THROWS_AS(write_json({}, "/nowhere/truth.json"), RigError);
}

}  // namespace
}  // namespace opjoule::rig
