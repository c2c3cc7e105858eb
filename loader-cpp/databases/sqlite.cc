// SQLite: one row of the table a row, in the table of YCSB's JDBC binding:
//
//   CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 BLOB, FIELD1 BLOB, ...)
//
// Values are bound as blobs, so that they may hold any byte. Habits: insert of an existing key is
// kExists and changes nothing; update writes the changed columns alone. Each client has a
// connection of its own, with statements prepared once. With sqlite.batch above 1 a client commits
// after that many writes; a full disk may undo the writes since the last commit, and the message
// then says so.
#include "databases/shared/directory.h"
#include "databases/shared/options.h"
#include "databases/sqlite_client.h"
#include "databases/sqlite_vfs.h"
#include "loader/database.h"

namespace opjoule {

const Engine& sqlite_engine();

namespace {

const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"sqlite.journal_mode", "delete", "delete, truncate, persist, memory, wal or off"},
      {"sqlite.synchronous", "by-durability",
       "off, normal, full or extra; by-durability: off for async, full for sync"},
      {"sqlite.batch", "1", "writes in one transaction; 1: each commits by itself"},
      {"sqlite.page_bytes", "4096", "page size of a new database"},
      {"sqlite.cache_kib", "2000", "page cache of each connection"},
      {"sqlite.mmap_bytes", "0", "bytes of the file read through a memory map"},
      {"sqlite.wal_autocheckpoint_pages", "1000",
       "pages in the log that start a checkpoint; 0: never"},
      {"sqlite.busy_timeout_ms", "10000", "how long a locked database is waited for"},
  };
  return all;
}

class SqliteDatabase : public Database {
 public:
  explicit SqliteDatabase(EventSink* events) : events_(events) {
    if (events != nullptr) vfs_ = std::make_unique<SqliteVfs>(events);
  }

  Status open(const OpenRequest& request, std::string_view version);
  std::unique_ptr<Client> client(Status& status) override;
  Status settle(double limit_s, bool* settled) override;
  Status count(uint64_t* rows) override;
  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override {
    connection_.reset();
    return Status::ok();
  }

 private:
  Status read_options(Options& options, const Properties& properties);
  Status read_back();
  [[nodiscard]] const char* vfs_name() const { return vfs_ ? vfs_->name() : nullptr; }

  EventSink* events_;
  std::unique_ptr<SqliteVfs> vfs_;
  DatabaseDirectory directory_;
  SqliteOptions options_;
  // With a rollback journal SQLite lets one connection write while none reads, and the others sleep
  // and try again. With the write-ahead log, or transactions of several operations, waiting is left
  // to SQLite.
  Gate gate_;
  uint16_t field_count_ = 0;
  std::unique_ptr<SqliteConnection> connection_;
  std::map<std::string, std::string> settings_;
};

Status SqliteDatabase::read_options(Options& options, const Properties& properties) {
  const bool sync = options.sync();
  options_.journal_mode = options.choice("sqlite.journal_mode",
                                         {"delete", "truncate", "persist", "memory", "wal", "off"});
  options_.synchronous =
      options.choice("sqlite.synchronous", {"by-durability", "off", "normal", "full", "extra"});
  // With `full` the removal of the rollback journal, which is the commit, may not be on the medium
  // yet: a loss of power would undo it. `extra` syncs its folder, too (sqlite.org/pragma.html).
  const std::string on_the_medium = options_.journal_mode == "delete" ? "extra" : "full";
  if (options_.synchronous == "by-durability") options_.synchronous = sync ? on_the_medium : "off";
  options_.batch = options.integer("sqlite.batch", 1, 1'000'000'000);
  options_.page_bytes = options.integer("sqlite.page_bytes", 512, 65536);
  options_.cache_kib = options.integer("sqlite.cache_kib", 0, 1 << 30);
  options_.mmap_bytes = options.integer("sqlite.mmap_bytes", 0, 0x7fff0000);
  options_.wal_autocheckpoint_pages =
      options.integer("sqlite.wal_autocheckpoint_pages", 0, 1 << 30);
  options_.busy_timeout_ms = options.integer("sqlite.busy_timeout_ms", 0, 3'600'000);
  if (!options.status().is_ok()) return options.status();
  const bool durable = options_.synchronous == "full" || options_.synchronous == "extra";
  if (properties.has("durability") && sync != durable && (sync || options_.synchronous != "normal"))
    return {StatusCode::kBadInput, "durability=" + std::string(sync ? "sync" : "async") +
                                       " contradicts sqlite.synchronous=" + options_.synchronous};
  if ((options_.page_bytes & (options_.page_bytes - 1)) != 0)
    return {StatusCode::kBadInput,
            "property sqlite.page_bytes=" + std::to_string(options_.page_bytes) +
                ": expected a power of two from 512 to 65536"};
  options.settings()["durability"] = durable ? "sync" : "async";
  return Status::ok();
}

Status SqliteDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("sqlite", *request.properties, rules());
  if (Status status = read_options(options, *request.properties); !status.is_ok()) return status;
  if (const int most = SqliteConnection::most_fields(); request.field_count > most)
    return {StatusCode::kBadInput, "property fieldcount=" + std::to_string(request.field_count) +
                                       ": expected at most " + std::to_string(most) +
                                       ", as many as a table of SQLite can have beside its key"};
  if (Status status = directory_.open(request, "sqlite", version); !status.is_ok()) return status;
  settings_ = std::move(options.settings());
  settings_["updates"] = "in place";
  field_count_ = request.field_count;
  gate_.use(request.threads > 1 && options_.batch == 1 && options_.journal_mode != "wal");
  connection_ = std::make_unique<SqliteConnection>(options_, events_);
  if (Status status = connection_->open(directory_.file("usertable.sqlite"), vfs_name());
      !status.is_ok())
    return status;
  if (Status status = connection_->run("CREATE TABLE IF NOT EXISTS usertable "
                                       "(YCSB_KEY VARCHAR(255) PRIMARY KEY, " +
                                       sqlite_columns(field_count_, " BLOB") + ")");
      !status.is_ok())
    return status;
  return read_back();
}

Status SqliteDatabase::read_back() {
  static const std::map<std::string, std::string> pragmas = {
      {"sqlite.journal_mode", "journal_mode"}, {"sqlite.synchronous", "synchronous"},
      {"sqlite.page_bytes", "page_size"},      {"sqlite.mmap_bytes", "mmap_size"},
      {"sqlite.cache_kib", "cache_size"},      {"sqlite.secure_delete", "secure_delete"},
      {"sqlite.auto_vacuum", "auto_vacuum"}};
  for (const auto& [key, pragma] : pragmas)
    if (Status status = connection_->ask("PRAGMA " + pragma, &settings_[key]); !status.is_ok())
      return status;
  static const char* const levels[] = {"off", "normal", "full", "extra"};
  settings_["sqlite.synchronous"] = levels[std::stoi(settings_["sqlite.synchronous"]) & 3];
  std::string& cache = settings_["sqlite.cache_kib"];  // SQLite gives KiB as a negative number
  if (cache.starts_with('-')) cache.erase(0, 1);
  return Status::ok();
}

std::unique_ptr<Client> SqliteDatabase::client(Status& status) {
  auto client = std::make_unique<SqliteClient>(options_, field_count_, events_, gate_);
  status = client->open(directory_.file("usertable.sqlite"), vfs_name());
  if (!status.is_ok()) return nullptr;
  return client;
}

// SQLite has no threads of its own: what may be left to do is to move the write-ahead log into the
// database.
Status SqliteDatabase::settle(double, bool* settled) {
  *settled = true;
  if (options_.journal_mode != "wal") return Status::ok();
  const int result = connection_->checkpoint(SQLITE_CHECKPOINT_TRUNCATE);
  *settled = result == SQLITE_OK;
  return (result & 0xff) == SQLITE_BUSY ? Status::ok() : connection_->status(result);
}

Status SqliteDatabase::count(uint64_t* rows) {
  std::string answer;
  Status status = connection_->ask("SELECT COUNT(*) FROM usertable", &answer);
  if (status.is_ok()) *rows = std::stoull(answer);
  return status;
}

std::unique_ptr<Database> open_sqlite(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<SqliteDatabase>(request.events);
  status = database->open(request, sqlite_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& sqlite_engine() {
  static const Engine engine{"sqlite", sqlite3_libversion(), rules(), open_sqlite};
  return engine;
}

}  // namespace opjoule
