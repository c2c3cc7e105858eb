// Berkeley DB: one key-value pair a row in the B-tree of usertable.db, the value as
// loader/row.h lays it out.
//
// Habits: insert replaces an existing key; update is a get, merge and put, or with updates=blind a
// put alone, which cannot tell a missing key (two threads changing one row at once: the later put
// wins). After a deadlock (mode transactional) the operation is tried again, up to 100 times, each
// counted as busy; a scan only if it has visited nothing yet. Without a log (modes store and
// concurrent) a crash before settle or close may leave the database unusable. In mode store clients
// take turns; if no operation writes, each opens the database for itself instead, with a cache of
// its own.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "databases/berkeleydb_environment.h"
#include "databases/shared/directory.h"
#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {

const Engine& berkeleydb_engine();

namespace {

constexpr int kDeadlockTries = 100;

const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"berkeleydb.mode", "by-durability",
       "store, concurrent or transactional; by-durability: store for async, transactional for "
       "sync"},
      {"berkeleydb.cache_bytes", "262144", "page cache; Berkeley DB itself adds a quarter"},
      {"berkeleydb.page_bytes", "4096", "page size of a new database"},
      {"berkeleydb.checkpoint_bytes", "10485760",
       "logged bytes between checkpoints (transactional)"},
  };
  return all;
}

DBT dbt(std::string_view bytes) {
  DBT out;
  std::memset(&out, 0, sizeof out);
  out.data = const_cast<char*>(bytes.data());
  out.size = static_cast<uint32_t>(bytes.size());
  return out;
}

std::string_view view(const DBT& dbt) { return {static_cast<const char*>(dbt.data), dbt.size}; }

// Memory that Berkeley DB enlarges as needed and that is kept for the next row.
class GrowingDbt {
 public:
  GrowingDbt() {
    std::memset(&dbt_, 0, sizeof dbt_);
    dbt_.flags = DB_DBT_REALLOC;
  }
  ~GrowingDbt() { std::free(dbt_.data); }
  GrowingDbt(const GrowingDbt&) = delete;
  GrowingDbt& operator=(const GrowingDbt&) = delete;
  void assign(std::string_view bytes) {
    dbt_.data = std::realloc(dbt_.data, bytes.size() + 1);
    std::memcpy(dbt_.data, bytes.data(), bytes.size());
    dbt_.size = static_cast<uint32_t>(bytes.size());
  }
  DBT* get() { return &dbt_; }
  [[nodiscard]] std::string_view bytes() const { return view(dbt_); }

 private:
  DBT dbt_;
};

class BerkeleyClient : public Client {
 public:
  explicit BerkeleyClient(BerkeleyEnvironment& environment)
      : environment_(environment), db_(environment.db()) {}
  // With an environment of its own.
  explicit BerkeleyClient(std::unique_ptr<BerkeleyEnvironment> own) : BerkeleyClient(*own) {
    own_ = std::move(own);
  }

  Status read(std::string_view key, FieldChoice, Row& out) override {
    int result = 0;
    {
      const Gate::Inside inside = environment_.reading();
      result = again([&] { return get(key, out.buffer()); });
    }
    return result == 0 ? out.parse() : berkeley_status(result);
  }

  Status insert(std::string_view key, const Row& row) override {
    const std::string_view stored = row.stored();
    if (Status status = environment_.keep_room(stored.size(), &since_check_); !status.is_ok())
      return status;
    DBT at = dbt(key);
    DBT value = dbt(stored);
    const Gate::Inside inside = environment_.writing();
    const int result = again([&] { return db_->put(db_, nullptr, &at, &value, 0); });
    return result == 0 ? environment_.wrote(stored.size()) : berkeley_status(result);
  }

  Status update(std::string_view key, const Row& changed, bool blind) override {
    if (blind) return insert(key, changed);
    if (Status status = read(key, {}, merged_); !status.is_ok()) return status;
    merged_.merge(changed);
    return insert(key, merged_);
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice, const Visitor& visit) override;

  Status remove(std::string_view key, bool) override {
    DBT at = dbt(key);
    const Gate::Inside inside = environment_.writing();
    const int result = again([&] { return db_->del(db_, nullptr, &at, 0); });
    return result == 0 ? environment_.wrote(key.size()) : berkeley_status(result);
  }

  [[nodiscard]] RetryCounts retries() const override { return retries_; }

 private:
  // Reads straight into the buffer, which has the last row's size: mostly the right one. Another
  // thread may have made the row longer, even again and again.
  int get(std::string_view key, std::string& buffer) {
    DBT at = dbt(key);
    for (;;) {
      DBT value = dbt(buffer);
      value.flags = DB_DBT_USERMEM;
      value.ulen = value.size;
      const int result = db_->get(db_, nullptr, &at, &value, 0);
      if (result != 0 && result != DB_BUFFER_SMALL) return result;
      buffer.resize(value.size);
      if (result == 0) return 0;
    }
  }

  template <typename Operation>
  int again(Operation operation) {
    int result = operation();
    for (int tries = 0; result == DB_LOCK_DEADLOCK && tries < kDeadlockTries; ++tries) {
      ++retries_.busy;
      result = operation();
    }
    return result;
  }

  int visit_from(DBC* cursor, uint64_t limit, const Visitor& visit, uint64_t* visited,
                 Status* status);

  std::unique_ptr<BerkeleyEnvironment> own_;
  BerkeleyEnvironment& environment_;
  DB* db_;
  uint64_t since_check_ = 0;
  RetryCounts retries_;
  GrowingDbt key_;
  GrowingDbt value_;
  Row merged_;
  Row scanned_;
};

Status BerkeleyClient::scan(std::string_view start, uint64_t limit, FieldChoice,
                            const Visitor& visit) {
  uint64_t visited = 0;
  Status status;
  const Gate::Inside inside = environment_.reading();
  const auto walk = [&] {
    DBC* cursor = nullptr;
    int result = db_->cursor(db_, nullptr, &cursor, 0);
    if (result != 0) return result;
    key_.assign(start);
    result = visit_from(cursor, limit, visit, &visited, &status);
    const int closed = cursor->close(cursor);
    return result == 0 || result == DB_NOTFOUND ? closed : result;
  };
  int result = walk();
  for (int tries = 0; result == DB_LOCK_DEADLOCK && visited == 0 && tries < kDeadlockTries;
       ++tries) {
    ++retries_.busy;
    result = walk();
  }
  return result == 0 ? status : berkeley_status(result);
}

int BerkeleyClient::visit_from(DBC* cursor, uint64_t limit, const Visitor& visit, uint64_t* visited,
                               Status* status) {
  for (uint32_t move = DB_SET_RANGE; *visited < limit; move = DB_NEXT) {
    if (const int result = cursor->get(cursor, key_.get(), value_.get(), move); result != 0)
      return result;
    *status = scanned_.assign(value_.bytes());
    if (!status->is_ok()) return 0;
    visit(key_.bytes(), scanned_);
    ++*visited;
  }
  return 0;
}

class BerkeleyDatabase : public Database {
 public:
  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Client> client(Status& status) override {
    if (!own_environments_) return std::make_unique<BerkeleyClient>(environment_);
    BerkeleyOptions options = options_;
    options.clients = 1;
    auto own = std::make_unique<BerkeleyEnvironment>();
    status = own->open(directory_.path(), options, nullptr);
    if (!status.is_ok()) return nullptr;
    return std::make_unique<BerkeleyClient>(std::move(own));
  }
  // Berkeley DB has no threads of its own: what is left to do is to write its cache.
  Status settle(double, bool* settled) override {
    const Status status = environment_.write_back();
    *settled = status.is_ok();
    return status;
  }
  Status count(uint64_t* rows) override;
  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override { return environment_.close(); }

 private:
  Status read_options(Options& options, int threads);
  Status drop_unclean(const OpenRequest& request);
  void read_back();

  DatabaseDirectory directory_;
  BerkeleyOptions options_;
  BerkeleyEnvironment environment_;
  bool own_environments_ = false;  // of clients that need not see each other's writes
  std::map<std::string, std::string> settings_;
};

Status BerkeleyDatabase::read_options(Options& options, int threads) {
  std::string mode =
      options.choice("berkeleydb.mode", {"by-durability", "store", "concurrent", "transactional"});
  options_.sync = options.sync();
  options_.clients = threads;
  options_.cache_bytes = options.integer("berkeleydb.cache_bytes", 20480, 1LL << 40);
  options_.page_bytes = options.integer("berkeleydb.page_bytes", 512, 65536);
  options_.checkpoint_bytes = options.integer("berkeleydb.checkpoint_bytes", 1 << 16, 1LL << 40);
  if (!options.status().is_ok()) return options.status();
  if (mode == "by-durability") mode = options_.sync ? "transactional" : "store";
  if (options_.sync && mode != "transactional")
    return {StatusCode::kBadInput, "durability=sync contradicts berkeleydb.mode=" + mode};
  if ((options_.page_bytes & (options_.page_bytes - 1)) != 0)
    return {StatusCode::kBadInput,
            "property berkeleydb.page_bytes=" + std::to_string(options_.page_bytes) +
                ": expected a power of two from 512 to 65536"};
  options_.mode = mode == "store"        ? BerkeleyMode::kStore
                  : mode == "concurrent" ? BerkeleyMode::kConcurrent
                                         : BerkeleyMode::kTransactional;
  if (options_.mode != BerkeleyMode::kTransactional) options_.checkpoint_bytes = 0;
  options.settings()["berkeleydb.mode"] = mode;
  return Status::ok();
}

Status BerkeleyDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("berkeleydb", *request.properties, rules());
  if (Status status = read_options(options, request.threads); !status.is_ok()) return status;
  if (Status status = directory_.open(request, "berkeleydb", version); !status.is_ok())
    return status;
  if (Status status = drop_unclean(request); !status.is_ok()) return status;
  options_.read_only = request.read_only && options_.mode == BerkeleyMode::kStore;
  if (Status status = environment_.open(directory_.path(), options_, request.events);
      !status.is_ok())
    return status;
  settings_ = std::move(options.settings());
  own_environments_ = options_.read_only && request.threads > 1;
  settings_["berkeleydb.caches"] = std::to_string(own_environments_ ? request.threads : 1);
  read_back();
  return Status::ok();
}

// After a crash without a log the database cannot be trusted: a resumed load starts over,
// everything else is refused.
Status BerkeleyDatabase::drop_unclean(const OpenRequest& request) {
  const std::string unclean = directory_.file(kUncleanName);
  if (::access(unclean.c_str(), F_OK) != 0) return Status::ok();
  if (!request.resume)
    return {StatusCode::kCorrupt, "the last loader that wrote to " + directory_.path() +
                                      " died before it closed, without a log to recover from; load "
                                      "anew (berkeleydb.mode=transactional keeps a log)"};
  ::unlink(directory_.file("usertable.db").c_str());
  ::unlink(unclean.c_str());
  return Status::ok();
}

void BerkeleyDatabase::read_back() {
  uint32_t gibibytes = 0, bytes = 0, page_bytes = 0;
  int caches = 0;
  environment_.env()->get_cachesize(environment_.env(), &gibibytes, &bytes, &caches);
  environment_.db()->get_pagesize(environment_.db(), &page_bytes);
  settings_["berkeleydb.cache_bytes_held"] =
      std::to_string((static_cast<uint64_t>(gibibytes) << 30) + bytes);
  settings_["berkeleydb.page_bytes"] = std::to_string(page_bytes);
}

Status BerkeleyDatabase::count(uint64_t* rows) {
  DB_BTREE_STAT* stat = nullptr;
  DB* db = environment_.db();
  const int result = db->stat(db, nullptr, &stat,
                              0);  // walks through the tree: the fast figure may be out of date
  if (result == 0) *rows = stat->bt_nkeys;
  std::free(stat);
  return berkeley_status(result);
}

std::unique_ptr<Database> open_berkeleydb(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<BerkeleyDatabase>();
  status = database->open(request, berkeleydb_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& berkeleydb_engine() {
  static const Engine engine = [] {
    int major = 0, minor = 0, patch = 0;
    db_version(&major, &minor, &patch);
    return Engine{"berkeleydb",
                  std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
                  rules(), open_berkeleydb};
  }();
  return engine;
}

}  // namespace opjoule
