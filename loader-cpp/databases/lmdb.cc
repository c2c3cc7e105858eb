// LMDB: one key-value pair a row in the unnamed database, the value as loader/row.h lays it
// out. Keys: 1 to 511 bytes.
//
// Habits: insert replaces an existing key; update is a get, merge and put in one write transaction,
// or with updates=blind a put alone, which cannot tell a missing key. Every write is a transaction.
// Each client keeps one read transaction and one cursor, renewed for each read. There may be any
// number of clients; LMDB lets one write at a time. MDB_WRITEMAP is not used: a full disk would
// then be a SIGBUS instead of an error.
#include <lmdb.h>

#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {

const Engine& lmdb_engine();

namespace {

// The map takes address space, not memory: a process has 512 GiB of it on a 64-bit Raspberry Pi OS,
// at most 3 GiB on a 32-bit one.
constexpr const char* kDefaultMapBytes = sizeof(void*) == 8 ? "68719476736" : "1073741824";
constexpr size_t kSmallMapBytes = 1 << 28;
constexpr int64_t kMaxMapBytes = sizeof(void*) == 8 ? 1LL << 46 : 2LL << 30;

const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"lmdb.map_bytes", kDefaultMapBytes,
       "address space set aside: the most the database can grow to"},
      {"lmdb.max_readers", "126", "clients that can read at once"},
      {"lmdb.read_ahead", "true", "let the kernel read ahead in the map"},
  };
  return all;
}

Status to_status(int result) {
  switch (result) {
    case MDB_SUCCESS:
      return Status::ok();
    case MDB_NOTFOUND:
      return Status::not_found();
    case MDB_MAP_FULL:
      return {StatusCode::kNoSpace, "lmdb: the map is full; give a larger lmdb.map_bytes"};
    case MDB_BAD_VALSIZE:
      return {StatusCode::kBadInput, "lmdb: a key has to have 1 to 511 bytes"};
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
      return {StatusCode::kCorrupt, std::string("lmdb: ") + mdb_strerror(result)};
    default:
      return io_status("lmdb", mdb_strerror(result));
  }
}

MDB_val val(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }
std::string_view view(const MDB_val& val) {
  return {static_cast<const char*>(val.mv_data), val.mv_size};
}

struct Shared {
  MDB_env* env = nullptr;
  MDB_dbi dbi = 0;
  EventSink* events = nullptr;
  bool sync = false;
};

// A transaction that is aborted at the end of its scope, unless committed.
class WriteTransaction {
 public:
  explicit WriteTransaction(const Shared& shared)
      : shared_(shared), result_(mdb_txn_begin(shared.env, nullptr, 0, &txn_)) {}
  ~WriteTransaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;

  [[nodiscard]] int begun() const { return result_; }
  [[nodiscard]] MDB_txn* get() const { return txn_; }
  // LMDB writes and syncs during the commit: with durability=sync the whole commit counts as the
  // sync.
  int commit() {
    MDB_txn* txn = txn_;
    txn_ = nullptr;
    return timed(shared_.sync ? shared_.events : nullptr, EventKind::kSync, "commit",
                 [&] { return mdb_txn_commit(txn); });
  }

 private:
  const Shared& shared_;
  MDB_txn* txn_ = nullptr;
  int result_;
};

class LmdbClient : public Client {
 public:
  explicit LmdbClient(const Shared& shared) : shared_(shared) {}
  ~LmdbClient() override {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
    if (reader_ != nullptr) mdb_txn_abort(reader_);
  }

  Status open() {
    int result = mdb_txn_begin(shared_.env, nullptr, MDB_RDONLY, &reader_);
    if (result == 0) result = mdb_cursor_open(reader_, shared_.dbi, &cursor_);
    if (result == MDB_READERS_FULL)
      return {StatusCode::kBadInput, "lmdb: more clients than lmdb.max_readers"};
    if (reader_ != nullptr) mdb_txn_reset(reader_);
    return to_status(result);
  }

  Status read(std::string_view key, FieldChoice, Row& out) override {
    MDB_val wanted = val(key);
    MDB_val found;
    int result = mdb_txn_renew(reader_);
    if (result != 0) return to_status(result);
    result = mdb_get(reader_, shared_.dbi, &wanted, &found);
    Status status = result == 0 ? out.assign(view(found)) : to_status(result);
    mdb_txn_reset(reader_);
    return status;
  }

  Status insert(std::string_view key, const Row& row) override {
    WriteTransaction write(shared_);
    if (write.begun() != 0) return to_status(write.begun());
    return put(write, key, row);
  }

  Status update(std::string_view key, const Row& changed, bool blind) override {
    if (blind) return insert(key, changed);
    WriteTransaction write(shared_);
    if (write.begun() != 0) return to_status(write.begun());
    MDB_val wanted = val(key);
    MDB_val found;
    if (const int result = mdb_get(write.get(), shared_.dbi, &wanted, &found); result != 0)
      return to_status(result);
    if (Status status = merged_.assign(view(found)); !status.is_ok()) return status;
    merged_.merge(changed);
    return put(write, key, merged_);
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice, const Visitor& visit) override {
    int result = mdb_txn_renew(reader_);
    if (result != 0) return to_status(result);
    const Status status = visit_from(start, limit, visit);
    mdb_txn_reset(reader_);
    return status;
  }

  Status remove(std::string_view key, bool) override {
    WriteTransaction write(shared_);
    if (write.begun() != 0) return to_status(write.begun());
    MDB_val wanted = val(key);
    const int result = mdb_del(write.get(), shared_.dbi, &wanted, nullptr);
    return to_status(result == 0 ? write.commit() : result);
  }

 private:
  Status put(WriteTransaction& write, std::string_view key, const Row& row) {
    MDB_val at = val(key);
    MDB_val value = val(row.stored());
    const int result = mdb_put(write.get(), shared_.dbi, &at, &value, 0);
    return to_status(result == 0 ? write.commit() : result);
  }

  Status visit_from(std::string_view start, uint64_t limit, const Visitor& visit) {
    MDB_val key = val(start);
    MDB_val value;
    int result = mdb_cursor_renew(reader_, cursor_);
    if (result == 0) result = mdb_cursor_get(cursor_, &key, &value, MDB_SET_RANGE);
    for (; result == 0 && limit > 0; --limit) {
      if (Status status = scanned_.assign(view(value)); !status.is_ok()) return status;
      visit(view(key), scanned_);
      if (limit > 1) result = mdb_cursor_get(cursor_, &key, &value, MDB_NEXT);
    }
    return result == MDB_NOTFOUND ? Status::ok() : to_status(result);
  }

  const Shared& shared_;
  MDB_txn* reader_ = nullptr;
  MDB_cursor* cursor_ = nullptr;
  Row merged_;
  Row scanned_;
};

class LmdbDatabase : public Database {
 public:
  ~LmdbDatabase() override { (void)close(); }

  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Client> client(Status& status) override {
    auto client = std::make_unique<LmdbClient>(shared_);
    status = client->open();
    if (!status.is_ok()) return nullptr;
    return client;
  }

  // LMDB has no threads of its own: what is left to do is to bring the written pages to the medium.
  Status settle(double, bool* settled) override {
    const int result = timed(shared_.events, EventKind::kSync, "settle",
                             [&] { return mdb_env_sync(shared_.env, 1); });
    *settled = result == 0;
    return to_status(result);
  }

  Status count(uint64_t* rows) override {
    MDB_stat stat;
    const int result = mdb_env_stat(shared_.env, &stat);
    if (result == 0) *rows = stat.ms_entries;
    return to_status(result);
  }

  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }

  Status close() override {
    if (shared_.env != nullptr) mdb_env_close(shared_.env);
    shared_.env = nullptr;
    return Status::ok();
  }

 private:
  int open_environment(size_t map_bytes, unsigned max_readers, unsigned flags);
  void read_back();

  DatabaseDirectory directory_;
  Shared shared_;
  std::map<std::string, std::string> settings_;
};

Status LmdbDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("lmdb", *request.properties, rules());
  auto map_bytes = static_cast<size_t>(options.integer("lmdb.map_bytes", 1 << 20, kMaxMapBytes));
  const auto max_readers = static_cast<unsigned>(options.integer("lmdb.max_readers", 1, 100000));
  unsigned flags = MDB_NOTLS;  // a read transaction belongs to its client, not to a thread
  if (!options.boolean("lmdb.read_ahead")) flags |= MDB_NORDAHEAD;
  shared_.sync = options.sync();
  if (!shared_.sync) flags |= MDB_NOSYNC;
  if (!options.status().is_ok()) return options.status();
  if (Status status = directory_.open(request, "lmdb", version); !status.is_ok()) return status;
  shared_.events = request.events;
  int result = open_environment(map_bytes, max_readers, flags);
  // If the system cannot provide the default size, it is halved until it can; the settings show the
  // result.
  while (result == ENOMEM && !request.properties->has("lmdb.map_bytes") &&
         map_bytes > kSmallMapBytes) {
    map_bytes /= 2;
    (void)close();
    result = open_environment(map_bytes, max_readers, flags);
  }
  if (result == ENOMEM)
    return {StatusCode::kBadInput, "lmdb: no address space for lmdb.map_bytes=" +
                                       std::to_string(map_bytes) + "; give a smaller one"};
  if (result != 0) return to_status(result);
  settings_ = std::move(options.settings());
  read_back();
  return Status::ok();
}

int LmdbDatabase::open_environment(size_t map_bytes, unsigned max_readers, unsigned flags) {
  int result = mdb_env_create(&shared_.env);
  if (result == 0) result = mdb_env_set_mapsize(shared_.env, map_bytes);
  if (result == 0) result = mdb_env_set_maxreaders(shared_.env, max_readers);
  if (result == 0) result = mdb_env_open(shared_.env, directory_.path().c_str(), flags, 0644);
  MDB_txn* txn = nullptr;
  if (result == 0) result = mdb_txn_begin(shared_.env, nullptr, 0, &txn);
  if (result != 0) return result;
  result = mdb_dbi_open(txn, nullptr, 0, &shared_.dbi);
  if (result == 0) return mdb_txn_commit(txn);
  mdb_txn_abort(txn);
  return result;
}

void LmdbDatabase::read_back() {
  MDB_envinfo info;
  MDB_stat stat;
  unsigned flags = 0;
  mdb_env_info(shared_.env, &info);
  mdb_env_stat(shared_.env, &stat);
  mdb_env_get_flags(shared_.env, &flags);
  settings_["lmdb.map_bytes"] = std::to_string(info.me_mapsize);
  settings_["lmdb.max_readers"] = std::to_string(info.me_maxreaders);
  settings_["lmdb.read_ahead"] = (flags & MDB_NORDAHEAD) != 0 ? "false" : "true";
  settings_["durability"] = (flags & MDB_NOSYNC) != 0 ? "async" : "sync";
  settings_["lmdb.page_bytes"] = std::to_string(stat.ms_psize);
}

std::unique_ptr<Database> open_lmdb(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<LmdbDatabase>();
  status = database->open(request, lmdb_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& lmdb_engine() {
  static const Engine engine = [] {
    int major = 0, minor = 0, patch = 0;
    mdb_version(&major, &minor, &patch);
    return Engine{"lmdb",
                  std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch),
                  rules(), open_lmdb};
  }();
  return engine;
}

}  // namespace opjoule
