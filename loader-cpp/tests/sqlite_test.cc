// What is SQLite's alone: its settings, transactions of several writes, waiting for a lock.
#include <sqlite3.h>

#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

const Engine& sqlite() { return *find_engine("sqlite"); }

TEST_CASE(
    "sqlite: asynchronous is synchronous=off on a rollback journal, and read back from SQLite") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  auto settings = place.open(sqlite(), How::kCreate).database->settings();
  CHECK(settings.at("sqlite.journal_mode") == "delete");
  CHECK(settings.at("sqlite.synchronous") == "off");
  CHECK(settings.at("durability") == "async");
}

TEST_CASE(
    "sqlite: synchronous also syncs the removal of the rollback journal, which is the commit") {
  for (const auto& [journal_mode, synchronous] :
       {std::pair{"delete", "extra"}, {"truncate", "full"}, {"wal", "full"}}) {
    TemporaryDirectory directory;
    Place place{directory.path(), {}, {}};
    place.properties.set("durability", "sync");
    place.properties.set("sqlite.journal_mode", journal_mode);
    const auto settings = place.open(sqlite(), How::kCreate).database->settings();
    CHECK(settings.at("sqlite.synchronous") == synchronous);
  }
}

TEST_CASE("sqlite: durability and synchronous that contradict each other are refused") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("durability", "sync");
  place.properties.set("sqlite.synchronous", "off");
  const Status status = place.open(sqlite(), How::kCreate).status;
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message() == "durability=sync contradicts sqlite.synchronous=off");
}

TEST_CASE("sqlite: as many fields as a table can have are taken, one more leaves nothing") {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(":memory:", &handle) == SQLITE_OK);
  const int columns = sqlite3_limit(handle, SQLITE_LIMIT_COLUMN, -1);
  sqlite3_close(handle);
  TemporaryDirectory directory;
  Place place{directory.path() + "/db", {}, {}};
  place.field_count = static_cast<uint16_t>(columns);
  const Status status = place.open(sqlite(), How::kCreate).status;
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message().find("fieldcount=" + std::to_string(columns)) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(place.path));
  --place.field_count;
  CHECK_OK(place.open(sqlite(), How::kCreate).status);
}

TEST_CASE("sqlite: a field without a column is refused, also once all fields have been read") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  Opened opened = place.open(sqlite(), How::kCreate);
  auto client = opened.client();
  CHECK_OK(client->insert(key_of(1), row_of(1)));
  const auto columns = static_cast<uint16_t>(row_of(1).field_count());
  Row found;
  for (int twice = 0; twice < 2; ++twice) {
    CHECK_OK(client->read(key_of(1), {}, found));
    CHECK_OK(client->read(key_of(1), {false, static_cast<uint16_t>(columns - 1)}, found));
    CHECK(client->read(key_of(1), {false, columns}, found).code() == StatusCode::kBadInput);
  }
}

TEST_CASE(
    "sqlite: the write-ahead log is moved into the database by settling, seen as a checkpoint") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("sqlite.journal_mode", "wal");
  Opened opened = place.open(sqlite(), How::kCreate);
  auto client = opened.client();
  for (size_t i = 0; i < 3000; ++i) REQUIRE(client->insert(key_of(i), row_of(i)).is_ok());
  CHECK(opened.database->settings().at("sqlite.journal_mode") == "wal");
  const size_t automatic = place.events.of(EventKind::kCheckpoint).size();
  CHECK(automatic >= 1);
  CHECK(std::filesystem::file_size(place.path + "/usertable.sqlite-wal") > 0);
  bool settled = false;
  CHECK_OK(opened.database->settle(3600, &settled));
  CHECK(settled);
  CHECK(std::filesystem::file_size(place.path + "/usertable.sqlite-wal") == 0);
  CHECK(place.events.of(EventKind::kCheckpoint).size() == automatic + 1);
}

TEST_CASE("sqlite: a batch is committed at its size, the rest by flush") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("sqlite.batch", "10");
  Opened opened = place.open(sqlite(), How::kCreate);
  auto client = opened.client();
  for (size_t i = 0; i < 25; ++i) REQUIRE(client->insert(key_of(i), row_of(i)).is_ok());
  CHECK(opened.count() == 20);
  CHECK_OK(client->flush());
  CHECK(opened.count() == 25);
}

TEST_CASE("sqlite: a batch whose first write fails takes the ones after it") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  place.properties.set("sqlite.batch", "10");
  Opened opened = place.open(sqlite(), How::kCreate);
  auto client = opened.client();
  CHECK_OK(client->insert(key_of(1), row_of(1)));
  CHECK_OK(client->flush());
  CHECK(client->insert(key_of(1), row_of(2)).code() == StatusCode::kExists);
  CHECK_OK(client->insert(key_of(2), row_of(2)));
  CHECK_OK(client->flush());
  CHECK(opened.count() == 2);
  CHECK(client->insert(key_of(1), row_of(2)).code() == StatusCode::kExists);
  CHECK_OK(client->flush());
  auto other = opened.client();  // the lock is free
  CHECK_OK(other->insert(key_of(3), row_of(3)));
  CHECK_OK(other->flush());
}

TEST_CASE(
    "sqlite: a locked database is waited for up to the limit; waits and time-outs are counted") {
  uint64_t waits = 0;
  // A busy computer may let one wait take the whole limit: then with a longer one.
  for (const char* limit_ms : {"30", "1000", "30000"}) {
    TemporaryDirectory directory;
    Place place{directory.path(), {}, {}};
    place.properties.set("sqlite.busy_timeout_ms", limit_ms);
    place.properties.set("sqlite.batch", "10");
    Opened opened = place.open(sqlite(), How::kCreate);
    auto holder = opened.client();
    auto waiter = opened.client();
    CHECK_OK(holder->insert(key_of(1), row_of(1)));  // its transaction stays open
    CHECK(waiter->insert(key_of(2), row_of(2)).code() == StatusCode::kBusy);
    waits = waiter->retries().busy;
    CHECK(waiter->retries().timeout == 1);
    CHECK_OK(holder->flush());
    CHECK_OK(waiter->insert(key_of(2), row_of(2)));
    CHECK_OK(waiter->flush());
    CHECK(opened.count() == 2);
    if (waits > 3) break;
  }
  CHECK(waits > 3);
}

TEST_CASE("sqlite: the table is the one of YCSB's JDBC binding, values are blobs") {
  TemporaryDirectory directory;
  Place place{directory.path(), {}, {}};
  Opened opened = place.open(sqlite(), How::kCreate);
  CHECK_OK(opened.client()->insert("user1", row_of(1)));
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open((place.path + "/usertable.sqlite").c_str(), &raw) == SQLITE_OK);
  std::string found;
  const char* sql =
      "SELECT YCSB_KEY || ' ' || typeof(FIELD1) || ' ' || length(FIELD2) FROM usertable";
  const auto take = [](void* out, int, char** row, char**) {
    *static_cast<std::string*>(out) += row[0];
    return 0;
  };
  CHECK(sqlite3_exec(raw, sql, take, &found, nullptr) == SQLITE_OK);
  CHECK(found == "user1 blob 100");
  sqlite3_close(raw);
}

}  // namespace
}  // namespace opjoule
