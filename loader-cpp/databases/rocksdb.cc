// RocksDB: one key-value pair a row, the value as loader/row.h lays it out, in the default
// column family.
//
// Habits: insert replaces an existing key; update is a get, merge and put, or with updates=blind a
// put alone, which cannot tell a missing key (two threads changing one row at once: the later
// put wins); remove gets first, to tell a missing key, but not with
// removes=blind. Any number of clients share the database.
#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>
#if __has_include(<rocksdb/advanced_cache.h>)
#include <rocksdb/advanced_cache.h>  // class Cache since RocksDB 8; before, cache.h has it
#endif

#include <chrono>
#include <thread>

#include "databases/rocksdb_events.h"
#include "databases/rocksdb_log.h"
#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"
#include "databases/shared/pair_client.h"
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

Status rocksdb_status(const rocksdb::Status& status) {
  if (status.ok()) return Status::ok();
  if (status.IsNotFound()) return Status::not_found();
  const std::string words = "rocksdb: " + status.ToString();
  if (status.IsCorruption() || status.IsPathNotFound()) return {StatusCode::kCorrupt, words};
  if (status.IsNoSpace()) return {StatusCode::kNoSpace, words};
  if (status.IsBusy() || status.IsTimedOut()) return {StatusCode::kBusy, words};
  return io_status("rocksdb", status.ToString());
}

rocksdb::CompressionType compression_of(const std::string& name) {
  if (name == "none") return rocksdb::kNoCompression;
  if (name == "lz4") return rocksdb::kLZ4Compression;
  if (name == "zstd") return rocksdb::kZSTD;
  return rocksdb::kSnappyCompression;
}

struct RocksdbApi {
  rocksdb::DB* db = nullptr;
  rocksdb::ColumnFamilyHandle* values = nullptr;
  RocksdbListener* listener = nullptr;
  rocksdb::ReadOptions read;
  rocksdb::WriteOptions write;

  rocksdb::Status get(std::string_view key, std::string* value) const {
    return db->Get(read, values, slice(key), value);
  }
  rocksdb::Status put(std::string_view key, std::string_view value) const {
    return db->Put(write, values, slice(key), slice(value));
  }
  rocksdb::Status remove(std::string_view key) const {
    return db->Delete(write, values, slice(key));
  }
  std::unique_ptr<rocksdb::Iterator> iterator() const {
    return std::unique_ptr<rocksdb::Iterator>(db->NewIterator(read, values));
  }
  uint64_t take_stalls() const { return listener->take_stalls(); }
  static rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }
  static Status to_status(const rocksdb::Status& status) { return rocksdb_status(status); }
};

class RocksdbDatabase : public Database {
 public:
  explicit RocksdbDatabase(EventSink* events)
      : env_(events != nullptr ? rocksdb_timed_env(events) : nullptr),
        listener_(std::make_shared<RocksdbListener>(events)) {}

  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Client> client(Status&) override {
    return std::make_unique<PairClient<RocksdbApi>>(api_);
  }
  Status settle(double limit_s, bool* settled) override;
  Status count(uint64_t* rows) override { return count_pairs(api_, rows); }
  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override {
    const Status status = rocksdb_status(db_->Close());
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
  RocksdbApi api_;
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
  api_.write.disableWAL = !options.boolean("rocksdb.log");
  api_.write.sync = options.sync();
  api_.read.verify_checksums = options.boolean("rocksdb.verify_checksums");
  return out;
}

Status RocksdbDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("rocksdb", *request.properties, rules());
  rocksdb::Options engine_options = read_options(options);
  if (!options.status().is_ok()) return options.status();
  if (api_.write.sync && api_.write.disableWAL)
    return {StatusCode::kBadInput, "durability=sync contradicts rocksdb.log=false"};
  if (Status status = directory_.open(request, "rocksdb", version); !status.is_ok()) return status;
  engine_options.info_log = rocksdb_log(directory_.file("LOG"));
  // By default RocksDB stops silently at damage in its log and drops the rest, whose rows would
  // then be missing. What a killed writer leaves at the end of the log is no damage. A resumed load
  // looks for its rows anyway.
  if (!request.resume)
    engine_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  rocksdb::DB* db = nullptr;
  if (Status status = rocksdb_status(rocksdb::DB::Open(engine_options, directory_.path(), &db));
      !status.is_ok())
    return status;
  db_.reset(db);
  api_.db = db;
  api_.values = db->DefaultColumnFamily();
  api_.listener = listener_.get();
  settings_ = std::move(options.settings());
  read_back();
  return Status::ok();
}

// RocksDB silently adjusts some options when it opens: the settings show what it then uses.
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
}

// RocksDB 7 has no call that waits for background work: its own figures are read every 5 ms.
// Memtables, too, are work that is left: without their flush the next open would do it. Of a
// read-only database, which has none, the flush is refused.
Status RocksdbDatabase::settle(double limit_s, bool* settled) {
  rocksdb::FlushOptions without_wait;
  without_wait.wait = false;
  db_->Flush(without_wait).PermitUncheckedError();
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
