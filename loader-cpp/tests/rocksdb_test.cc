// What is RocksDB's alone: what it does in the background, as events.
#include <cstdlib>

#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

const Engine& rocksdb_by_name() { return *find_engine("rocksdb"); }

TEST_CASE("rocksdb: flushes, compactions and syncs are events; settling waits for the last") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("rocksdb.write_buffer_bytes", "65536");
  Opened opened = place.open(rocksdb_by_name(), How::kCreate);
  auto client = opened.client();
  std::string value(1000, '\0');
  for (char& byte : value) byte = static_cast<char>(std::rand());
  const Row row = make_row({{0, value}, {1, ""}, {2, ""}});
  for (size_t i = 0; i < 4000; ++i) REQUIRE(client->insert(key_of(i * 7919 % 4000), row).is_ok());
  bool settled = false;
  CHECK_OK(opened.database->settle(3600, &settled));
  CHECK(settled);
  CHECK(place.events.of(EventKind::kFlush).size() > 10);
  const auto compactions = place.events.of(EventKind::kCompaction);
  CHECK(compactions.size() > 0);
  for (const SeenEvent& event : compactions) {
    CHECK(event.end_board_ns > event.start_board_ns);
    CHECK(event.detail.starts_with("level=0->"));
    CHECK(place.events.was_begun(event));
  }
  CHECK(place.events.of(EventKind::kSync).size() > 10);
}

TEST_CASE("rocksdb: durable writes without a log are refused") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("durability", "sync");
  place.properties.set("rocksdb.log", "false");
  CHECK(place.open(rocksdb_by_name(), How::kCreate).status.code() == StatusCode::kBadInput);
}

}  // namespace
}  // namespace opjoule
