#include <doctest/doctest.h>

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
  truth.extra("note", json_string("a \"b\"\n"));
  CHECK(truth.to_json(4) ==
        "{\n  \"schema\": {\"name\": \"rig-sim-truth\", \"version\": 1},\n  \"duration_s\": 4,\n"
        "  \"total_j\": 30,\n  \"total_c\": 6,\n  \"intervals\": [\n"
        "    {\"start_s\": 1, \"end_s\": 3, \"energy_j\": 15}],\n"
        "  \"note\": \"a \\\"b\\\"\\u000a\"\n}\n");
}

TEST_CASE("a truth that starts in mid-profile counts from there") {
  Profile profile;
  profile.add(0, 1, 5);
  Truth truth(profile, 10);
  truth.edge(11);
  truth.edge(12);
  const std::string json = truth.to_json(14);
  CHECK(json.find("\"duration_s\": 4,") != std::string::npos);
  CHECK(json.find("\"total_j\": 20,") != std::string::npos);
  CHECK(json.find("{\"start_s\": 1, \"end_s\": 2, \"energy_j\": 5}") != std::string::npos);
}

TEST_CASE("a truth that cannot be written is an error") {
  const Profile profile;
  CHECK_THROWS_AS(Truth(profile).write("/nowhere/truth.json", 0), RigError);
}

}  // namespace
}  // namespace opjoule::rig
