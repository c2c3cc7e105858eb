// What is Berkeley DB's alone: its modes, and checkpoints of its log.
#include <thread>

#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

const Engine& berkeleydb() { return *find_engine("berkeleydb"); }

std::string mode_of(Place& place) {
  const Opened opened = place.open(berkeleydb(), How::kCreate);
  return opened.status.is_ok() ? opened.database->settings().at("berkeleydb.mode")
                               : opened.status.message();
}

TEST_CASE("berkeleydb: the mode follows durability, a contradiction is refused") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  CHECK(mode_of(place) == "store");
  place.properties.set("durability", "sync");
  CHECK(mode_of(place) == "transactional");
  place.properties.set("berkeleydb.mode", "store");
  CHECK(mode_of(place) == "durability=sync contradicts berkeleydb.mode=store");
}

TEST_CASE("berkeleydb: concurrent and transactional keep what they are given, too") {
  for (const char* mode : {"concurrent", "transactional"}) {
    CAPTURE(mode);
    TemporaryDirectory directory;
    Place place{directory.path(), {}, {}};
    place.properties.set("berkeleydb.mode", mode);
    for (How how : {How::kCreate, How::kOpen}) {
      Opened opened = place.open(berkeleydb(), how);
      auto client = opened.client();
      for (size_t i = 0; how == How::kCreate && i < 2000; ++i)
        CHECK_OK(client->insert(key_of(i), row_of(i)));
      Row found;
      for (size_t i = 0; i < 2000; ++i) {
        CHECK_OK(client->read(key_of(i), {}, found));
        CHECK(same(found, row_of(i)));
      }
      CHECK(opened.count() == 2000);
    }
  }
}

TEST_CASE("berkeleydb: where nothing writes, each thread has the database for itself") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  {
    Opened opened = place.open(berkeleydb(), How::kCreate);
    CHECK(opened.database->settings().at("berkeleydb.caches") == "1");
    auto client = opened.client();
    for (size_t i = 0; i < 2000; ++i) REQUIRE(client->insert(key_of(i), row_of(i)).is_ok());
    client.reset();
    CHECK_OK(opened.database->close());
  }
  place.read_only = true;
  Opened opened = place.open(berkeleydb(), How::kOpen);
  CHECK(opened.database->settings().at("berkeleydb.caches") == "2");
  const std::unique_ptr<Client> clients[] = {opened.client(), opened.client()};
  size_t same_rows[2] = {0, 0};
  const auto work = [&](size_t thread) {
    Row found;
    for (size_t i = 0; i < 2000; ++i)
      if (clients[thread]->read(key_of(i), {}, found).is_ok() && same(found, row_of(i)))
        ++same_rows[thread];
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  CHECK(same_rows[0] == 2000);
  CHECK(same_rows[1] == 2000);
  CHECK_FALSE(clients[0]->insert("user-new", row_of(1)).is_ok());
}

TEST_CASE(
    "berkeleydb: transactions of two threads on the same records end well, deadlocks counted not "
    "lost") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("berkeleydb.mode", "transactional");
  Opened opened = place.open(berkeleydb(), How::kCreate);
  auto one = opened.client();
  auto two = opened.client();
  for (size_t i = 0; i < 10; ++i) CHECK_OK(one->insert(key_of(i), row_of(i)));
  std::string failures[2];
  auto work = [&](Client& client, int thread) {
    for (size_t i = 0; i < 2000; ++i) {
      const Row changed = make_row({{0, std::string(i, 'x')}});  // longer each time
      const Status status = client.update(key_of(i * 7 % 10), changed, false);
      if (!status.is_ok()) failures[thread] += status.message() + "; ";
    }
  };
  std::thread other([&] { work(*two, 1); });
  work(*one, 0);
  other.join();
  CHECK(failures[0] + failures[1] == "");
  CHECK(opened.count() == 10);
}

TEST_CASE("berkeleydb: the log is checkpointed as it grows, and does not pile up") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("berkeleydb.mode", "transactional");
  place.properties.set("berkeleydb.checkpoint_bytes", "1000000");
  Opened opened = place.open(berkeleydb(), How::kCreate);
  auto client = opened.client();
  const Row row = make_row({{0, std::string(10000, 'x')}, {1, ""}, {2, ""}});
  for (size_t i = 0; i < 5000; ++i) REQUIRE(client->insert(key_of(i % 100), row).is_ok());
  CHECK(place.events.of(EventKind::kCheckpoint).size() >= 40);
  CHECK(opened.database->size_on_disk() < 30'000'000);  // 50 MB were logged, in files of 10 MB
}

}  // namespace
}  // namespace opjoule
