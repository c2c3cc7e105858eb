// RocksDB with the loader's default settings.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <memory>

#include "bench/bare.h"

namespace opjoule {

BareResult bare_rocksdb(const BareRequest& request) {
  rocksdb::Options options;
  options.create_if_missing = request.phase == BarePhase::kLoad;
  options.compression = rocksdb::kSnappyCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(8 << 20);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* raw = nullptr;
  if (const auto status = rocksdb::DB::Open(options, request.path, &raw); !status.ok())
    bare_failure(status.ToString());
  const std::unique_ptr<rocksdb::DB> db(raw);
  return bare_pairs(
      request,
      [&](const std::string& key, std::string* value) {
        if (!db->Get({}, key, value).ok()) bare_failure("get " + key);
      },
      [&](const std::string& key, std::string_view value) {
        if (!db->Put({}, key, {value.data(), value.size()}).ok()) bare_failure("put " + key);
      });
}

}  // namespace opjoule
