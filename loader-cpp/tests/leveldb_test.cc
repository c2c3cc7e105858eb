// What is LevelDB's alone: what it does in the background, as events.
#include <cstdlib>

#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

const Engine& leveldb() { return *find_engine("leveldb"); }

Row incompressible(size_t bytes) {
  std::string value(bytes, '\0');
  for (char& byte : value) byte = static_cast<char>(std::rand());
  return make_row({{0, value}, {1, ""}, {2, ""}});
}

TEST_CASE("leveldb: flushes, compactions and their syncs are events; settling waits for the last") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("leveldb.write_buffer_bytes", "65536");
  Opened opened = place.open(leveldb(), How::kCreate);
  auto client = opened.client();
  const Row row = incompressible(1000);
  for (size_t i = 0; i < 4000; ++i) REQUIRE(client->insert(key_of(i * 7919 % 4000), row).is_ok());
  bool settled = false;
  CHECK_OK(opened.database->settle(3600, &settled));
  CHECK(settled);
  const auto flushes = place.events.of(EventKind::kFlush);
  const auto compactions = place.events.of(EventKind::kCompaction);
  const size_t syncs = place.events.of(EventKind::kSync).size();
  CHECK(flushes.size() > 20);
  CHECK(compactions.size() > 0);
  CHECK(syncs > flushes.size());
  for (const SeenEvent& event : compactions) {
    CHECK(event.start_board_ns > 0);
    CHECK(event.end_board_ns > event.start_board_ns);
    CHECK(event.detail.starts_with("Compact"));
    CHECK(place.events.was_begun(event));
  }
  for (const SeenEvent& event : flushes) {
    CHECK(event.start_board_ns > 0);
    CHECK(event.detail.starts_with("Level-0 table #"));
    CHECK(place.events.was_begun(event));
  }
  CHECK_OK(opened.database->settle(3600, &settled));
  CHECK(place.events.of(EventKind::kSync).size() == syncs);
}

TEST_CASE("leveldb: a writer held up by a flush is a stall, counted and timed") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("leveldb.write_buffer_bytes", "65536");
  Opened opened = place.open(leveldb(), How::kCreate);
  auto client = opened.client();
  const Row row = incompressible(30000);  // a few rows fill a buffer faster than it is flushed
  for (size_t i = 0; i < 2000; ++i) REQUIRE(client->insert(key_of(i * 7919 % 2000), row).is_ok());
  const auto stalls = place.events.of(EventKind::kStall);
  CHECK(stalls.size() > 0);
  CHECK(client->retries().stall >= stalls.size());
  for (const SeenEvent& event : stalls) CHECK(event.end_board_ns >= event.start_board_ns);
}

TEST_CASE("leveldb: a setting outside its bounds is refused, not clipped") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("leveldb.write_buffer_bytes", "1000");
  const Status status = place.open(leveldb(), How::kCreate).status;
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message().find("leveldb.write_buffer_bytes=1000") != std::string::npos);
}

}  // namespace
}  // namespace opjoule
