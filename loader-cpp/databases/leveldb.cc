// LevelDB: one key-value pair a row, the value as loader/row.h lays it out.
//
// Habits: insert replaces an existing key; update is a get, merge and put, or with updates=blind a
// put alone, which cannot tell a missing key (two threads changing one row at once: the later
// put wins); remove gets first, to tell a missing key, but not with
// removes=blind. Any number of clients share the database.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>

#include <cerrno>
#include <cstring>

#include "databases/leveldb_env.h"
#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"
#include "databases/shared/pair_client.h"
#include "loader/database.h"

namespace opjoule {

const Engine& leveldb_engine();

namespace {

// The bounds are those to which LevelDB silently clips (db/db_impl.cc, SanitizeOptions): within
// them it takes the value as given.
const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"leveldb.write_buffer_bytes", "4194304", "memtable size before it is flushed"},
      {"leveldb.block_cache_bytes", "8388608", "cache of uncompressed blocks"},
      {"leveldb.block_bytes", "4096", "uncompressed size of a table's block"},
      {"leveldb.block_restart_interval", "16", "keys between full keys in a block"},
      {"leveldb.max_file_bytes", "2097152", "size of a table file before the next is begun"},
      {"leveldb.max_open_files", "1000", "table files kept open"},
      {"leveldb.compression", "snappy", "snappy or none"},
      {"leveldb.bloom_bits_per_key", "0", "Bloom filter bits for each key; 0 for no filter"},
      {"leveldb.reuse_logs", "false", "append to the old log when opening"},
      {"leveldb.paranoid_checks", "false", "stop at the first sign of corruption"},
      {"leveldb.verify_checksums", "false", "check every block that a read or scan touches"},
  };
  return all;
}

// LevelDB has few codes; its messages tell the rest (util/env_posix.cc). NotFound without a message
// is a missing key, with one a missing file; EINVAL is a mapped table that ends before the place to
// be read.
Status leveldb_status(const leveldb::Status& status) {
  if (status.ok()) return Status::ok();
  const std::string words = status.ToString();
  if (status.IsNotFound() && words == "NotFound: ") return Status::not_found();
  const bool is_cut = status.IsIOError() && words.ends_with(std::strerror(EINVAL));
  if (is_cut)
    return {StatusCode::kCorrupt, "leveldb: " + words + " (the file is shorter than it was)"};
  if (status.IsCorruption() || status.IsNotFound() || status.IsInvalidArgument())
    return {StatusCode::kCorrupt, "leveldb: " + words};
  return io_status("leveldb", words);
}

struct LeveldbApi {
  leveldb::DB* db = nullptr;
  LeveldbEnv* env = nullptr;
  leveldb::ReadOptions read;
  leveldb::WriteOptions write;

  leveldb::Status get(std::string_view key, std::string* value) const {
    return db->Get(read, slice(key), value);
  }
  leveldb::Status put(std::string_view key, std::string_view value) const {
    return db->Put(write, slice(key), slice(value));
  }
  leveldb::Status remove(std::string_view key) const { return db->Delete(write, slice(key)); }
  std::unique_ptr<leveldb::Iterator> iterator() const {
    return std::unique_ptr<leveldb::Iterator>(db->NewIterator(read));
  }
  uint64_t take_stalls() const { return env->take_stalls(); }
  static leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
  static Status to_status(const leveldb::Status& status) { return leveldb_status(status); }
};

class LeveldbDatabase : public Database {
 public:
  explicit LeveldbDatabase(EventSink* events) : env_(events) {}

  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Client> client(Status&) override {
    memtable_flushed_ = false;
    return std::make_unique<PairClient<LeveldbApi>>(api_);
  }

  // The memtable, too, is work that is left: without its flush the next open would do it. LevelDB
  // flushes it before it compacts a range, here one above all keys, in which there is no file.
  Status settle(double limit_s, bool* settled) override {
    if (!memtable_flushed_) {
      const std::string above_all(64, '\xff');
      const leveldb::Slice range(above_all);
      db_->CompactRange(&range, &range);
      memtable_flushed_ = true;
    }
    *settled = env_.wait_idle(limit_s);
    return Status::ok();
  }

  Status count(uint64_t* rows) override { return count_pairs(api_, rows); }
  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }

  Status close() override {
    db_.reset();
    return Status::ok();
  }

 private:
  leveldb::Options read_options(Options& options);

  DatabaseDirectory directory_;
  LeveldbEnv env_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> bloom_;
  std::unique_ptr<leveldb::DB> db_;
  bool memtable_flushed_ = false;
  LeveldbApi api_;
  std::map<std::string, std::string> settings_;
};

leveldb::Options LeveldbDatabase::read_options(Options& options) {
  leveldb::Options out;
  out.env = &env_;
  out.create_if_missing = true;
  out.write_buffer_size = options.integer("leveldb.write_buffer_bytes", 64 << 10, 1 << 30);
  cache_.reset(leveldb::NewLRUCache(options.integer("leveldb.block_cache_bytes", 0, 1LL << 40)));
  out.block_cache = cache_.get();
  out.block_size = options.integer("leveldb.block_bytes", 1 << 10, 4 << 20);
  out.block_restart_interval =
      static_cast<int>(options.integer("leveldb.block_restart_interval", 1, 1 << 20));
  out.max_file_size = options.integer("leveldb.max_file_bytes", 1 << 20, 1 << 30);
  out.max_open_files = static_cast<int>(options.integer("leveldb.max_open_files", 74, 50000));
  out.compression = options.choice("leveldb.compression", {"snappy", "none"}) == "none"
                        ? leveldb::kNoCompression
                        : leveldb::kSnappyCompression;
  const int64_t bloom_bits = options.integer("leveldb.bloom_bits_per_key", 0, 100);
  if (bloom_bits > 0) bloom_.reset(leveldb::NewBloomFilterPolicy(static_cast<int>(bloom_bits)));
  out.filter_policy = bloom_.get();
  out.reuse_logs = options.boolean("leveldb.reuse_logs");
  out.paranoid_checks = options.boolean("leveldb.paranoid_checks");
  api_.read.verify_checksums = options.boolean("leveldb.verify_checksums");
  api_.write.sync = options.sync();
  return out;
}

Status LeveldbDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("leveldb", *request.properties, rules());
  const leveldb::Options engine_options = read_options(options);
  if (!options.status().is_ok()) return options.status();
  if (Status status = directory_.open(request, "leveldb", version); !status.is_ok()) return status;
  leveldb::DB* db = nullptr;
  if (Status status = leveldb_status(leveldb::DB::Open(engine_options, directory_.path(), &db));
      !status.is_ok())
    return status;
  db_.reset(db);
  api_.db = db;
  api_.env = &env_;
  // A resumed load looks for its rows anyway.
  if (const std::string lost = env_.lost_in_recovery(); !lost.empty() && !request.resume)
    return {StatusCode::kCorrupt, "leveldb: the log is damaged: " + lost +
                                      "; load the database anew, or finish it with load --resume"};
  settings_ = std::move(options.settings());
  return Status::ok();
}

std::unique_ptr<Database> open_leveldb(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<LeveldbDatabase>(request.events);
  status = database->open(request, leveldb_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& leveldb_engine() {
  static const Engine engine{
      "leveldb",
      std::to_string(leveldb::kMajorVersion) + "." + std::to_string(leveldb::kMinorVersion),
      rules(), open_leveldb};
  return engine;
}

}  // namespace opjoule
