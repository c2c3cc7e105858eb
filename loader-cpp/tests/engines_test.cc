// The contract that every engine keeps (loader/database.h), checked on all that are built in.
// `null` stores nothing and has a test of its own. MongoDB takes part where OPJOULE_TEST_MONGODB
// gives a server's address (host/tests/support/mongo_server.py runs a command with one).
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

using Check = std::function<void(const Engine&, Place&)>;

bool keeps_files(const Engine& engine) { return engine.name != "null" && engine.name != "mongodb"; }

void for_each_file_engine(const Check& check) {
  for (const Engine& engine : engines()) {
    if (!keeps_files(engine)) continue;
    CAPTURE(engine.name);
    TemporaryDirectory directory;
    Place place;
    place.path = directory.path() + "/database";
    check(engine, place);
  }
}

void for_each_engine(const Check& check) {
  for_each_file_engine(check);
  const Engine* mongodb = find_engine("mongodb");
  if (mongodb == nullptr || mongo_address().empty()) return;
  CAPTURE(mongodb->name);
  MongoPlace place;
  check(*mongodb, place);
}

void load(Client& client, size_t first, size_t last) {
  for (size_t i = first; i < last; ++i) {
    const Status status = client.insert(key_of(i), row_of(i));
    REQUIRE_MESSAGE(status.is_ok(), status.message());
  }
  const Status flushed = client.flush();
  REQUIRE_MESSAGE(flushed.is_ok(), flushed.message());
}

TEST_CASE("engines are listed by name, with a version, and found by it") {
  REQUIRE(!engines().empty());
  for (const Engine& engine : engines()) {
    CHECK(!engine.version.empty());
    CHECK(find_engine(engine.name) == &engine);
  }
  CHECK(find_engine("leveldbb") == nullptr);
}

TEST_CASE("a record is read back as it was written, NUL and other bytes included") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 10);
    Row found;
    CHECK_OK(client->read(key_of(7), {}, found));
    CHECK(same(found, row_of(7)));
    CHECK_OK(client->read(key_of(8), {false, 1}, found));
    CHECK(found.find(1) == row_of(8).find(1));
    CHECK_OK(client->insert("user-empty", make_row({{0, ""}, {1, "b"}, {2, ""}})));
    CHECK_OK(client->read("user-empty", {}, found));
    CHECK(same(found, make_row({{0, ""}, {1, "b"}, {2, ""}})));
  });
}

TEST_CASE("a missing key is not found, by read, one-field update and remove") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 3);
    Row found;
    CHECK(client->read("user9", {}, found).is_not_found());
    CHECK(client->update("user9", make_row({{1, "new"}}), false).is_not_found());
    CHECK(client->remove("user9", false).is_not_found());
    CHECK_OK(client->flush());
    CHECK(opened.count() == 3);
  });
}

TEST_CASE(
    "an update of one field leaves the others, one of all replaces them, lengths may change") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 3);
    Row found;
    CHECK_OK(client->update(key_of(1), make_row({{1, "a much longer value than before"}}), false));
    CHECK_OK(client->read(key_of(1), {}, found));
    CHECK(found.find(0) == row_of(1).find(0));
    CHECK(found.find(1) == "a much longer value than before");
    CHECK(found.find(2) == row_of(1).find(2));
    CHECK_OK(client->update(key_of(1), make_row({{2, "two"}, {0, "zero"}}), false));
    CHECK_OK(client->read(key_of(1), {}, found));
    CHECK(found.find(0) == "zero");
    CHECK(found.find(2) == "two");
    const Row whole = make_row({{0, "0"}, {1, "1"}, {2, "2"}});
    CHECK_OK(client->update(key_of(1), whole, true));
    CHECK(client->update("user8", whole, false).is_not_found());
    CHECK_OK(client->read(key_of(1), {}, found));
    CHECK(same(found, whole));
    CHECK_OK(client->flush());
    CHECK(opened.count() == 3);
  });
}

TEST_CASE("an insert of an existing key replaces it or is refused, and the count stays") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 3);
    const Status again = client->insert(key_of(1), row_of(9));
    Row found;
    CHECK_OK(client->read(key_of(1), {}, found));
    if (again.is_ok()) {
      CHECK(same(found, row_of(9)));
    } else {
      CHECK(again.code() == StatusCode::kExists);
      CHECK(same(found, row_of(1)));
    }
    CHECK_OK(client->flush());
    CHECK(opened.count() == 3);
  });
}

TEST_CASE("a scan visits records in key order from its start, or is unsupported") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 50);
    std::vector<std::string> keys;
    bool whole = true;
    const auto visit = [&](std::string_view key, const Row& row) {
      whole = whole && same(row, row_of(std::stoul(std::string(key.substr(4)))));
      keys.emplace_back(key);
    };
    const Status status = client->scan("user0000002", 5, {}, visit);
    if (engine.name == "flatfolder" || engine.name == "nestedfolder") {
      CHECK(status.code() == StatusCode::kUnsupported);
      return;
    }
    CHECK_OK(status);
    CHECK(keys ==
          std::vector<std::string>{key_of(20), key_of(21), key_of(22), key_of(23), key_of(24)});
    CHECK(whole);
    keys.clear();
    CHECK_OK(client->scan(key_of(48), 10, {false, 0}, [&](std::string_view key, const Row& row) {
      CHECK(row.find(0) == row_of(std::stoul(std::string(key.substr(4)))).find(0));
      keys.emplace_back(key);
    }));
    CHECK(keys == std::vector<std::string>{key_of(48), key_of(49)});
    CHECK_OK(client->update(key_of(1), make_row({{0, "writable after a scan"}}), false));
  });
}

TEST_CASE("a removed record is gone and no longer counted") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    load(*client, 0, 10);
    CHECK_OK(client->remove(key_of(4), true));
    Row found;
    CHECK(client->read(key_of(4), {}, found).is_not_found());
    CHECK_OK(client->flush());
    CHECK(opened.count() == 9);
  });
}

TEST_CASE("ten thousand records are loaded, counted, and found again after reopening") {
  for_each_engine([](const Engine& engine, Place& place) {
    {
      Opened opened = place.open(engine, How::kCreate);
      auto client = opened.client();
      load(*client, 0, 10000);
      CHECK(opened.count() == 10000);
      bool settled = false;
      CHECK_OK(opened.database->settle(3600, &settled));
      CHECK((settled || engine.name == "mongodb"));  // not every server has a command for it
      client.reset();
      CHECK_OK(opened.database->close());
      if (keeps_files(engine)) CHECK(opened.database->size_on_disk() > 10000);
    }
    Opened opened = place.open(engine, How::kOpen);
    auto client = opened.client();
    CHECK(opened.count() == 10000);
    Row found;
    for (size_t i = 0; i < 10000; i += 97) {
      CHECK_OK(client->read(key_of(i), {}, found));
      CHECK(same(found, row_of(i)));
    }
  });
}

TEST_CASE("two threads at once lose no record") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    REQUIRE_MESSAGE(opened.status.is_ok(), opened.status.message());
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 2; ++i) clients.push_back(opened.client());
    std::vector<Status> outcomes(2);
    auto work = [&](size_t thread) {
      Row found;
      for (size_t i = thread; i < 1000 && outcomes[thread].is_ok(); i += 2) {
        outcomes[thread] = clients[thread]->insert(key_of(i), row_of(i));
        if (outcomes[thread].is_ok())
          outcomes[thread] = clients[thread]->read(key_of(i), {}, found);
        if (outcomes[thread].is_ok() && !same(found, row_of(i)))
          outcomes[thread] = {StatusCode::kCorrupt, "another record came back"};
      }
      const Status flushed = clients[thread]->flush();
      if (outcomes[thread].is_ok()) outcomes[thread] = flushed;
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    CHECK_OK(outcomes[0]);
    CHECK_OK(outcomes[1]);
    CHECK(opened.count() == 1000);
  });
}

TEST_CASE("creating replaces the old database, of any engine; resuming keeps it") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    {
      Opened opened = place.open(engine, How::kCreate);
      load(*opened.client(), 0, 100);
    }
    {
      Opened opened = place.open(engine, How::kResume);
      CHECK(opened.status.message() == "");
      CHECK(opened.count() == 100);
      load(*opened.client(), 100, 110);
      CHECK(opened.count() == 110);
    }
    for (const Engine& other : engines()) {
      if (!keeps_files(other)) continue;
      CAPTURE(other.name);
      Opened replaced = place.open(other, How::kCreate);
      CHECK_MESSAGE(replaced.status.is_ok(), replaced.status.message());
      CHECK(replaced.count() == 0);
    }
  });
}

TEST_CASE("a directory with anyone else's file is refused and left as it was") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    {
      Opened opened = place.open(engine, How::kCreate);
      load(*opened.client(), 0, 10);
    }
    std::ofstream(place.path + "/thesis.txt") << "mine";
    const Opened refused = place.open(engine, How::kCreate);
    CHECK(refused.status.code() == StatusCode::kBadInput);
    CHECK(refused.status.message().find("thesis.txt") != std::string::npos);
    CHECK(std::filesystem::exists(place.path + "/thesis.txt"));
    Opened kept = place.open(engine, How::kOpen);
    CHECK(kept.status.message() == "");
    CHECK(kept.count() == 10);
  });
}

TEST_CASE(
    "opening finds nothing, another engine's database, or another field count: each said in one "
    "line") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    CHECK(place.open(engine, How::kOpen).status.code() == StatusCode::kBadInput);
    {
      Opened made = place.open(engine, How::kCreate);
    }
    for (const Engine& other : engines()) {
      if (!keeps_files(other) || other.name == engine.name) continue;
      const Status status = place.open(other, How::kOpen).status;
      CHECK(status.code() == StatusCode::kMismatch);
      CHECK(status.message().find("was written by " + engine.name) != std::string::npos);
    }
    place.field_count = 5;
    const Status status = place.open(engine, How::kResume).status;
    CHECK(status.code() == StatusCode::kMismatch);
    CHECK(status.message().find("fieldcount=3") != std::string::npos);
    CHECK(status.message().find('\n') == std::string::npos);
  });
}

TEST_CASE("a database that is open is busy for another loader") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    REQUIRE_MESSAGE(opened.status.is_ok(), opened.status.message());
    CHECK(place.open(engine, How::kOpen).status.code() == StatusCode::kBusy);
    CHECK(place.open(engine, How::kCreate).status.code() == StatusCode::kBusy);
  });
}

TEST_CASE(
    "a misspelt or wrong engine property is an error that names it, before anything is touched") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    if (engine.properties.size() > 1) {
      place.properties.set(engine.properties.back().key + "x", "1");
      const Status status = place.open(engine, How::kCreate).status;
      CHECK(status.code() == StatusCode::kBadInput);
      CHECK(status.message().find("did you mean " + engine.properties.back().key) !=
            std::string::npos);
      place.properties = {};
    }
    place.properties.set("durability", "perhaps");
    const Status status = place.open(engine, How::kCreate).status;
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK(status.message().find("durability=perhaps") != std::string::npos);
    CHECK(!std::filesystem::exists(place.path));
  });
}

TEST_CASE("every property an engine takes is in its settings, with its default") {
  for_each_engine([](const Engine& engine, Place& place) {
    Opened opened = place.open(engine, How::kCreate);
    REQUIRE_MESSAGE(opened.status.is_ok(), opened.status.message());
    const auto settings = opened.database->settings();
    for (const PropertyRule& rule : engine.properties) {
      CAPTURE(rule.key);
      REQUIRE(settings.count(rule.key) == 1);
      if (!rule.default_value.starts_with("by-") && !place.properties.has(rule.key))
        CHECK(settings.at(rule.key) == rule.default_value);
    }
  });
}

TEST_CASE("every property is in docs/reference/databases.md, with its default") {
  std::ifstream in(OPJOULE_SOURCE_ROOT "/docs/reference/databases.md");
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE(!text.empty());
  for (const Engine& engine : engines()) {
    CHECK(text.find("| `" + engine.name + "` |") != std::string::npos);
    for (const PropertyRule& rule : engine.properties) {
      if (rule.key == "durability") continue;
      if (rule.key == "lmdb.map_bytes" && sizeof(void*) == 4) continue;
      const std::string row = "| `" + rule.key + "` | " + rule.default_value + " |";
      CHECK_MESSAGE(text.find(row) != std::string::npos, row);
    }
  }
}

TEST_CASE(
    "durable writes are synced one by one, and their begin and end are events on the board clock") {
  for_each_file_engine([](const Engine& engine, Place& place) {
    place.properties.set("durability", "sync");
    Opened opened = place.open(engine, How::kCreate);
    auto client = opened.client();
    CHECK(opened.database->settings().at("durability") == "sync");
    const size_t before = place.events.of(EventKind::kSync).size();
    load(*client, 0, 20);
    bool settled = false;
    CHECK_OK(opened.database->settle(3600, &settled));
    const auto syncs = place.events.of(EventKind::kSync);
    CHECK(syncs.size() >= before + 20);
    for (const EventKind kind :
         {EventKind::kSync, EventKind::kFlush, EventKind::kCompaction, EventKind::kCheckpoint})
      for (const SeenEvent& event : place.events.of(kind)) CHECK(place.events.was_begun(event));
    for (size_t i = 1; i < syncs.size(); ++i) {
      CHECK(syncs[i].end_board_ns >= syncs[i].start_board_ns);
      CHECK(syncs[i].start_board_ns >= syncs[i - 1].start_board_ns);
    }
  });
}

}  // namespace
}  // namespace opjoule
