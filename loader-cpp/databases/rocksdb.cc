// RocksDB: one key-value pair a record, the value as loader/record.h lays it out, in the default
// column family.
//
// Habits: insert replaces an existing key; update of a whole record is a blind put (it cannot tell
// a missing key), of single fields a get, merge and put (two threads changing one record at once:
// the later put wins); remove gets first, to tell a missing key. Any number of sessions share the
// database.
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include <chrono>
#include <thread>

#include "databases/rocksdb_events.h"
#include "databases/rocksdb_log.h"
#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {

const Engine& rocksdb_engine();

namespace {

const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"rocksdb.write_buffer_bytes", "67108864", "memtable size before it is flushed"},
      {"rocksdb.max_write_buffers", "2", "memtables, the one in use included"},
      {"rocksdb.block_cache_bytes", "8388608", "cache of uncompressed blocks"},
      {"rocksdb.block_bytes", "4096", "uncompressed size of a table's block"},
      {"rocksdb.target_file_bytes", "67108864", "size of a table file on level 1"},
      {"rocksdb.level1_bytes", "268435456", "size of level 1"},
      {"rocksdb.level0_files", "4", "files on level 0 that start a compaction"},
      {"rocksdb.max_background_jobs", "2", "flushes and compactions at once"},
      {"rocksdb.max_open_files", "-1", "table files kept open; -1 for all"},
      {"rocksdb.compression", "snappy", "none, snappy, lz4 or zstd"},
      {"rocksdb.bloom_bits_per_key", "0", "Bloom filter bits for each key; 0 for no filter"},
      {"rocksdb.log", "true", "write-ahead log; without it a crash loses the memtables"},
      {"rocksdb.verify_checksums", "true", "check every block that is read"},
  };
  return all;
}

Status to_status(const rocksdb::Status& status) {
  if (status.ok()) return Status::ok();
  if (status.IsNotFound()) return Status::not_found();
  if (status.IsCorruption()) return {StatusCode::kCorrupt, "rocksdb: " + status.ToString()};
  if (status.IsNoSpace()) return {StatusCode::kNoSpace, "rocksdb: " + status.ToString()};
  if (status.IsBusy() || status.IsTimedOut())
    return {StatusCode::kBusy, "rocksdb: " + status.ToString()};
  return io_status("rocksdb", status.ToString());
}

rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const rocksdb::Slice& text) { return {text.data(), text.size()}; }

rocksdb::CompressionType compression_of(const std::string& name) {
  if (name == "none") return rocksdb::kNoCompression;
  if (name == "lz4") return rocksdb::kLZ4Compression;
  if (name == "zstd") return rocksdb::kZSTD;
  return rocksdb::kSnappyCompression;
}

struct AccessOptions {
  rocksdb::ReadOptions read;
  rocksdb::WriteOptions write;
};

class RocksdbSession : public Session {
 public:
  RocksdbSession(rocksdb::DB* db, const AccessOptions& access, RocksdbListener* listener)
      : db_(db), values_(db->DefaultColumnFamily()), access_(access), listener_(listener) {}

  Status read(std::string_view key, FieldChoice, Record& out) override {
    const rocksdb::Status got = db_->Get(access_.read, values_, slice(key), &out.buffer());
    return got.ok() ? out.parse() : to_status(got);
  }

  Status insert(std::string_view key, const Record& record) override {
    return to_status(db_->Put(access_.write, values_, slice(key), slice(record.stored())));
  }

  Status update(std::string_view key, const Record& changed, bool whole) override {
    if (whole) return insert(key, changed);
    if (Status status = read(key, {}, merged_); !status.is_ok()) return status;
    merged_.merge(changed);
    return insert(key, merged_);
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice, const Visitor& visit) override {
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(access_.read, values_));
    for (at->Seek(slice(start)); at->Valid() && limit > 0; at->Next(), --limit) {
      if (Status status = scanned_.assign(view(at->value())); !status.is_ok()) return status;
      visit(view(at->key()), scanned_);
    }
    return to_status(at->status());
  }

  Status remove(std::string_view key) override {
    const rocksdb::Status got = db_->Get(access_.read, values_, slice(key), &merged_.buffer());
    return to_status(got.ok() ? db_->Delete(access_.write, values_, slice(key)) : got);
  }

  // RocksDB stalls writers for the whole database: whichever session is asked first reports them.
  [[nodiscard]] RetryCounts retries() const override {
    taken_.stall += listener_->take_stalls();
    return taken_;
  }

 private:
  rocksdb::DB* db_;
  rocksdb::ColumnFamilyHandle* values_;
  AccessOptions access_;
  RocksdbListener* listener_;
  Record merged_;
  Record scanned_;
  mutable RetryCounts taken_;
};

class RocksdbDatabase : public Database {
 public:
  explicit RocksdbDatabase(EventSink* events)
      : env_(events != nullptr ? rocksdb_timed_env(events) : nullptr),
        listener_(std::make_shared<RocksdbListener>(events)) {}

  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Session> session(Status&) override {
    return std::make_unique<RocksdbSession>(db_.get(), access_, listener_.get());
  }
  Status settle(double limit_s, bool* settled) override;
  Status count(uint64_t* records) override;
  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override {
    const Status status = to_status(db_->Close());
    db_.reset();
    return status;
  }

 private:
  rocksdb::Options read_options(Options& options);
  void read_back();

  DatabaseDirectory directory_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<RocksdbListener> listener_;
  std::unique_ptr<rocksdb::DB> db_;
  AccessOptions access_;
  std::map<std::string, std::string> settings_;
};

rocksdb::Options RocksdbDatabase::read_options(Options& options) {
  rocksdb::Options out;
  out.create_if_missing = true;
  if (env_) out.env = env_.get();
  out.listeners.push_back(listener_);
  out.write_buffer_size = options.integer("rocksdb.write_buffer_bytes", 64 << 10, 1LL << 36);
  out.max_write_buffer_number =
      static_cast<int>(options.integer("rocksdb.max_write_buffers", 2, 1000));
  out.target_file_size_base = options.integer("rocksdb.target_file_bytes", 64 << 10, 1LL << 36);
  out.max_bytes_for_level_base = options.integer("rocksdb.level1_bytes", 64 << 10, 1LL << 44);
  out.level0_file_num_compaction_trigger =
      static_cast<int>(options.integer("rocksdb.level0_files", 1, 1000));
  out.max_background_jobs = static_cast<int>(options.integer("rocksdb.max_background_jobs", 1, 64));
  out.max_open_files = static_cast<int>(options.integer("rocksdb.max_open_files", -1, 1 << 20));
  out.compression =
      compression_of(options.choice("rocksdb.compression", {"snappy", "none", "lz4", "zstd"}));
  rocksdb::BlockBasedTableOptions table;
  table.block_cache =
      rocksdb::NewLRUCache(options.integer("rocksdb.block_cache_bytes", 0, 1LL << 40));
  table.block_size = options.integer("rocksdb.block_bytes", 1 << 10, 64 << 20);
  if (const int64_t bits = options.integer("rocksdb.bloom_bits_per_key", 0, 100); bits > 0)
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(static_cast<double>(bits)));
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  access_.write.disableWAL = !options.boolean("rocksdb.log");
  access_.write.sync = options.sync();
  access_.read.verify_checksums = options.boolean("rocksdb.verify_checksums");
  return out;
}

Status RocksdbDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("rocksdb", *request.properties, rules());
  rocksdb::Options engine_options = read_options(options);
  if (!options.status().is_ok()) return options.status();
  if (access_.write.sync && access_.write.disableWAL)
    return {StatusCode::kBadInput, "durability=sync contradicts rocksdb.log=false"};
  if (Status status = directory_.open(request, "rocksdb", version); !status.is_ok()) return status;
  engine_options.info_log = rocksdb_log(directory_.file("LOG"));
  rocksdb::DB* db = nullptr;
  if (Status status = to_status(rocksdb::DB::Open(engine_options, directory_.path(), &db));
      !status.is_ok())
    return status;
  db_.reset(db);
  settings_ = std::move(options.settings());
  read_back();
  return Status::ok();
}

// RocksDB adjusts some options at opening without a word: what it then holds is what counts.
void RocksdbDatabase::read_back() {
  const rocksdb::Options held = db_->GetOptions();
  settings_["rocksdb.write_buffer_bytes"] = std::to_string(held.write_buffer_size);
  settings_["rocksdb.max_write_buffers"] = std::to_string(held.max_write_buffer_number);
  settings_["rocksdb.target_file_bytes"] = std::to_string(held.target_file_size_base);
  settings_["rocksdb.level1_bytes"] = std::to_string(held.max_bytes_for_level_base);
  settings_["rocksdb.level0_files"] = std::to_string(held.level0_file_num_compaction_trigger);
  settings_["rocksdb.max_background_jobs"] = std::to_string(held.max_background_jobs);
  settings_["rocksdb.max_open_files"] = std::to_string(held.max_open_files);
  const auto* table = held.table_factory->GetOptions<rocksdb::BlockBasedTableOptions>();
  if (table != nullptr) {
    settings_["rocksdb.block_bytes"] = std::to_string(table->block_size);
    settings_["rocksdb.block_cache_bytes"] = std::to_string(table->block_cache->GetCapacity());
  }
  settings_["rocksdb.update"] = "whole record: blind put; single fields: get, merge and put";
}

// RocksDB 7 cannot be waited for: its own figures are asked every 5 ms. What is in the memtables
// stays there: it is in the log, which the caller syncs.
Status RocksdbDatabase::settle(double limit_s, bool* settled) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  static const char* const figures[] = {
      "rocksdb.num-running-flushes", "rocksdb.num-running-compactions",
      "rocksdb.mem-table-flush-pending", "rocksdb.compaction-pending"};
  for (;;) {
    uint64_t at_work = 0;
    for (const char* figure : figures) {
      uint64_t value = 0;
      if (db_->GetIntProperty(figure, &value)) at_work += value;
    }
    *settled = at_work == 0;
    if (*settled || std::chrono::steady_clock::now() >= until) return Status::ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Status RocksdbDatabase::count(uint64_t* records) {
  rocksdb::ReadOptions walk = access_.read;
  walk.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(walk));
  *records = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) ++*records;
  return to_status(at->status());
}

std::unique_ptr<Database> open_rocksdb(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<RocksdbDatabase>(request.events);
  status = database->open(request, rocksdb_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& rocksdb_engine() {
  static const Engine engine{"rocksdb", rocksdb::GetRocksVersionAsString(true), rules(),
                             open_rocksdb};
  return engine;
}

}  // namespace opjoule
