// LevelDB: one key-value pair a record, the value as loader/record.h lays it out.
//
// Habits: insert replaces an existing key; update of a whole record is a blind put (it cannot tell
// a missing key), of single fields a get, merge and put (two threads changing one record at once:
// the later put wins); remove gets first, to tell a missing key. Any number of sessions share the
// database.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include "databases/leveldb_env.h"
#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {

const Engine& leveldb_engine();

namespace {

// The bounds are those LevelDB clips to without a word (db/db_impl.cc, SanitizeOptions): within
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

Status to_status(const leveldb::Status& status) {
  if (status.ok()) return Status::ok();
  if (status.IsNotFound()) return Status::not_found();
  if (status.IsCorruption()) return {StatusCode::kCorrupt, "leveldb: " + status.ToString()};
  return io_status("leveldb", status.ToString());
}

leveldb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const leveldb::Slice& text) { return {text.data(), text.size()}; }

struct AccessOptions {
  leveldb::ReadOptions read;
  leveldb::WriteOptions write;
};

class LeveldbSession : public Session {
 public:
  LeveldbSession(leveldb::DB* db, const AccessOptions& access, LeveldbEnv* env)
      : db_(db), access_(access), env_(env) {}

  Status read(std::string_view key, FieldChoice, Record& out) override {
    const leveldb::Status got = db_->Get(access_.read, slice(key), &out.buffer());
    return got.ok() ? out.parse() : to_status(got);
  }

  Status insert(std::string_view key, const Record& record) override {
    return to_status(db_->Put(access_.write, slice(key), slice(record.stored())));
  }

  Status update(std::string_view key, const Record& changed, bool whole) override {
    if (whole) return insert(key, changed);
    if (Status status = read(key, {}, merged_); !status.is_ok()) return status;
    merged_.merge(changed);
    return insert(key, merged_);
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice, const Visitor& visit) override {
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator(access_.read));
    for (at->Seek(slice(start)); at->Valid() && limit > 0; at->Next(), --limit) {
      if (Status status = scanned_.assign(view(at->value())); !status.is_ok()) return status;
      visit(view(at->key()), scanned_);
    }
    return to_status(at->status());
  }

  Status remove(std::string_view key) override {
    if (leveldb::Status got = db_->Get(access_.read, slice(key), &merged_.buffer()); !got.ok())
      return to_status(got);
    return to_status(db_->Delete(access_.write, slice(key)));
  }

  // LevelDB stalls writers for the whole database: whichever session is asked first reports them.
  [[nodiscard]] RetryCounts retries() const override {
    taken_.stall += env_->take_stalls();
    return taken_;
  }

 private:
  leveldb::DB* db_;
  AccessOptions access_;
  LeveldbEnv* env_;
  Record merged_;
  Record scanned_;
  mutable RetryCounts taken_;
};

class LeveldbDatabase : public Database {
 public:
  explicit LeveldbDatabase(EventSink* events) : env_(events) {}

  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Session> session(Status&) override {
    return std::make_unique<LeveldbSession>(db_.get(), access_, &env_);
  }

  // What is in the memtable stays there: it is in the log, which the caller syncs.
  Status settle(double limit_s, bool* settled) override {
    *settled = env_.wait_idle(limit_s);
    return Status::ok();
  }

  Status count(uint64_t* records) override {
    leveldb::ReadOptions walk = access_.read;
    walk.fill_cache = false;
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator(walk));
    *records = 0;
    for (at->SeekToFirst(); at->Valid(); at->Next()) ++*records;
    return to_status(at->status());
  }

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
  AccessOptions access_;
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
  access_.read.verify_checksums = options.boolean("leveldb.verify_checksums");
  access_.write.sync = options.sync();
  return out;
}

Status LeveldbDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("leveldb", *request.properties, rules());
  const leveldb::Options engine_options = read_options(options);
  if (!options.status().is_ok()) return options.status();
  if (Status status = directory_.open(request, "leveldb", version); !status.is_ok()) return status;
  leveldb::DB* db = nullptr;
  if (Status status = to_status(leveldb::DB::Open(engine_options, directory_.path(), &db));
      !status.is_ok())
    return status;
  db_.reset(db);
  settings_ = std::move(options.settings());
  settings_["leveldb.update"] = "whole record: blind put; single fields: get, merge and put";
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
