// What the tests of the engines share: a fresh directory, rows that can be told apart, and an
// event sink that remembers.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "loader/database.h"
#include "tests/in_memory.h"

namespace opjoule {

// A directory of its own, gone at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (in_memory() / "opjoule-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct SeenEvent {
  EventKind kind;
  int64_t start_board_ns;
  int64_t end_board_ns;
  std::string detail;
};

class RememberingSink : public EventSink {
 public:
  void begin(EventKind kind, int64_t start) override {
    const std::lock_guard lock(mutex_);
    begun_.insert({kind, start});
  }
  // Whether begin() told of an event before add() did.
  bool was_begun(const SeenEvent& event) {
    const std::lock_guard lock(mutex_);
    return begun_.contains({event.kind, event.start_board_ns});
  }
  void add(EventKind kind, int64_t start, int64_t end, std::string_view detail) override {
    const std::lock_guard lock(mutex_);
    seen_.push_back({kind, start, end, std::string(detail)});
  }
  std::vector<SeenEvent> of(EventKind kind) {
    const std::lock_guard lock(mutex_);
    std::vector<SeenEvent> found;
    for (const SeenEvent& event : seen_)
      if (event.kind == kind) found.push_back(event);
    return found;
  }

 private:
  std::mutex mutex_;
  std::vector<SeenEvent> seen_;
  std::set<std::pair<EventKind, int64_t>> begun_;
};

// An engine on a directory, as a loader would open it.
struct Opened {
  std::unique_ptr<Database> database;
  Status status;

  std::unique_ptr<Client> client() {
    REQUIRE_MESSAGE(status.is_ok(), status.message());
    std::unique_ptr<Client> made = database->client(status);
    REQUIRE_MESSAGE(status.is_ok(), status.message());
    return made;
  }
  uint64_t count() {
    uint64_t rows = 0;
    const Status counted = database->count(&rows);
    REQUIRE_MESSAGE(counted.is_ok(), counted.message());
    return rows;
  }
};

enum class How { kCreate, kResume, kOpen };

struct Place {
  std::string path;
  Properties properties;
  RememberingSink events;
  uint16_t field_count = 3;
  int threads = 2;
  bool read_only = false;

  Opened open(const Engine& engine, How how) {
    OpenRequest request;
    request.path = path;
    request.create = how != How::kOpen;
    request.resume = how == How::kResume;
    request.read_only = read_only;
    request.field_count = field_count;
    request.threads = threads;
    request.properties = &properties;
    request.events = &events;
    Opened opened;
    opened.database = engine.open(request, opened.status);
    return opened;
  }
};

// The MongoDB server that tests may use, or nothing.
inline std::string mongo_address() {
  const char* address = std::getenv("OPJOULE_TEST_MONGODB");
  return address == nullptr ? "" : address;
}

// A database of that server that no other test has.
struct MongoPlace : Place {
  MongoPlace() {
    static int number = 0;
    path = mongo_address();
    properties.set("mongodb.database",
                   "test" + std::to_string(getpid()) + "_" + std::to_string(++number));
  }
};

inline std::string key_of(size_t number) {
  std::string digits = std::to_string(number);
  return "user" + std::string(8 - digits.size(), '0') + digits;
}

inline Row make_row(const std::vector<std::pair<uint16_t, std::string>>& fields) {
  std::vector<uint16_t> numbers;
  std::vector<uint32_t> lengths;
  std::string values;
  for (const auto& [number, value] : fields) {
    numbers.push_back(number);
    lengths.push_back(static_cast<uint32_t>(value.size()));
    values += value;
  }
  Row row;
  row.reset(numbers, lengths);
  std::memcpy(row.mutable_values().data(), values.data(), values.size());
  return row;
}

// Three fields that name their row; the middle one holds a NUL byte, a quote and a byte that is
// not UTF-8.
inline Row row_of(size_t number) {
  const std::string text = std::to_string(number);
  return make_row(
      {{0, "first " + text}, {1, std::string("a\0'\xff", 4) + text}, {2, std::string(100, 'x')}});
}

inline bool same(const Row& a, const Row& b, uint16_t field_count = 3) {
  for (uint16_t i = 0; i < field_count; ++i)
    if (a.find(i) != b.find(i) || (a.find(i).data() == nullptr) != (b.find(i).data() == nullptr))
      return false;
  return true;
}

#define CHECK_OK(expression)                           \
  do {                                                 \
    const ::opjoule::Status checked = (expression);    \
    CHECK_MESSAGE(checked.is_ok(), checked.message()); \
  } while (false)

}  // namespace opjoule
