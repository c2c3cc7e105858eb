// The one interface behind which every engine stands. One file an engine in databases/.
//
// A Database is opened once and shared; each worker thread asks it for a Client of its own.
// Thread safety: Database's methods are called from the main thread; a Client belongs to one
// thread; clients of one Database run at the same time. Lifetime: clients are destroyed before
// their Database; the EventSink and Properties outlive both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader/events.h"
#include "loader/properties.h"
#include "loader/row.h"
#include "loader/status.h"

namespace opjoule {

// Which fields an operation reads: all, or one.
struct FieldChoice {
  bool all = true;
  uint16_t number = 0;
};

// Times the engine made an operation wait and try again; summed into the summary.
struct RetryCounts {
  uint64_t busy = 0;
  uint64_t stall = 0;
  uint64_t timeout = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  // kNotFound for a missing key. `out` holds at least the chosen fields and is reused by the
  // caller.
  virtual Status read(std::string_view key, FieldChoice fields, Row& out) = 0;
  // Writes a whole row. Whether an existing key is replaced or gives kExists differs from engine to
  // engine; the engine's file says which.
  virtual Status insert(std::string_view key, const Row& row) = 0;
  // Changes the fields in `changed`: engines that store a row as one value get, merge and put.
  // `blind` says that `changed` holds all fields and is to be put as it is, without a get: a
  // missing key is then not noticed. Engines with an update of their own use that in both cases,
  // and say so in `updates` of their settings(). kNotFound for a missing key.
  virtual Status update(std::string_view key, const Row& changed, bool blind) = 0;
  // Visits up to `limit` rows in key order from the first key >= start. The views live until the
  // visitor returns. kUnsupported where the engine has no order.
  using Visitor = std::function<void(std::string_view key, const Row& row)>;
  virtual Status scan(std::string_view start, uint64_t limit, FieldChoice fields,
                      const Visitor& visit) = 0;
  // kNotFound for a missing key; with `blind` an engine that would have to read first to tell does
  // not, and removes nothing without a word.
  virtual Status remove(std::string_view key, bool blind) = 0;
  // Makes what this client has buffered visible and, under durability=sync, durable (open
  // transactions).
  virtual Status flush() { return Status::ok(); }
  [[nodiscard]] virtual RetryCounts retries() const { return {}; }
};

class Database {
 public:
  virtual ~Database() = default;

  // nullptr with `status` set where it fails.
  virtual std::unique_ptr<Client> client(Status& status) = 0;
  // Has the engine write what it keeps in memory, and waits until its background work (flush,
  // compaction, checkpoint) is done or `limit_s` has passed; *settled says which.
  virtual Status settle(double limit_s, bool* settled) = 0;
  // False once settle() has found that the engine cannot be asked: waiting longer would change
  // nothing.
  [[nodiscard]] virtual bool can_settle() const { return true; }
  // Rows stored, by the engine's own count or a walk.
  virtual Status count(uint64_t* rows) = 0;
  // Bytes of all the database's files; also after close().
  [[nodiscard]] virtual uint64_t size_on_disk() const = 0;
  // The settings in effect, read back from the engine where it can tell, by property name.
  [[nodiscard]] virtual std::map<std::string, std::string> settings() const = 0;
  // Closes the database; failures that show only then are its status. Called once.
  virtual Status close() = 0;
};

struct OpenRequest {
  std::string path;           // directory of the database (or connection text for a server)
  bool create = false;        // load: start anew, replacing what is there; run: open what is there
  bool resume = false;        // with create: keep what is there
  bool read_only = false;     // no operation to come writes
  uint16_t field_count = 10;  // columns of the SQL engines
  int threads = 1;
  const Properties* properties = nullptr;
  EventSink* events = nullptr;  // may be null
};

// What `loader databases` lists, and how an engine is found by name.
struct Engine {
  std::string name;
  std::string version;                   // the linked library's own
  std::vector<PropertyRule> properties;  // the engine's own keys, prefixed "<name>."
  std::unique_ptr<Database> (*open)(const OpenRequest& request, Status& status);
  bool is_server = false;  // OpenRequest's path is a connection's text
};

// Every engine built in, sorted by name.
const std::vector<Engine>& engines();
const Engine* find_engine(std::string_view name);

}  // namespace opjoule
