// What is MongoDB's alone: addresses, the marker, what is never dropped. All but the first need a
// server, as engines_test.cc says.
#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

const Engine* mongodb() { return find_engine("mongodb"); }
bool has_server() { return mongodb() != nullptr && !mongo_address().empty(); }

TEST_CASE("mongodb: an address that is none, or that nobody answers, is said in one line") {
  if (mongodb() == nullptr) return;
  Place place;
  place.path = "/tmp/somewhere";
  CHECK(place.open(*mongodb(), How::kCreate).status.code() == StatusCode::kBadInput);
  place.path = "mongodb://127.0.0.1:1";
  place.properties.set("mongodb.connect_timeout_ms", "200");
  const Status status = place.open(*mongodb(), How::kCreate).status;
  CHECK(status.code() == StatusCode::kIo);
  CHECK(status.message().find('\n') == std::string::npos);
  place.properties.set("mongodb.conect_timeout_ms", "200");
  CHECK(place.open(*mongodb(), How::kCreate).status.message().find("mongodb.connect_timeout_ms") !=
        std::string::npos);
}

TEST_CASE("mongodb: creating replaces, resuming keeps, another field count is a mismatch") {
  if (!has_server()) return;
  MongoPlace place;
  CHECK(place.open(*mongodb(), How::kOpen).status.code() == StatusCode::kBadInput);
  {
    Opened opened = place.open(*mongodb(), How::kCreate);
    auto client = opened.client();
    for (size_t i = 0; i < 10; ++i) CHECK_OK(client->insert(key_of(i), row_of(i)));
  }
  CHECK(place.open(*mongodb(), How::kResume).count() == 10);
  CHECK(place.open(*mongodb(), How::kOpen).count() == 10);
  place.field_count = 7;
  CHECK(place.open(*mongodb(), How::kOpen).status.code() == StatusCode::kMismatch);
  CHECK(place.open(*mongodb(), How::kCreate).count() == 0);
}

TEST_CASE("mongodb: the effective settings name the server and the write concern") {
  if (!has_server()) return;
  MongoPlace place;
  place.properties.set("durability", "sync");
  auto settings = place.open(*mongodb(), How::kCreate).database->settings();
  CHECK(!settings["mongodb.server_version"].empty());
  CHECK(settings["mongodb.write_concern"] == "w=1, j=true");
}

}  // namespace
}  // namespace opjoule
