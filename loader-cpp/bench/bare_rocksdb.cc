// RocksDB with the loader's default settings.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>

#include <memory>

#include "bench/bare.h"

namespace opjoule {

BareResult bare_rocksdb(const BareRequest& request) {
  rocksdb::Options options;
  options.create_if_missing = request.load;
  options.compression = rocksdb::kSnappyCompression;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(8 << 20);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* raw = nullptr;
  if (const auto status = rocksdb::DB::Open(options, request.path, &raw); !status.ok())
    bare_failure(status.ToString());
  const std::unique_ptr<rocksdb::DB> db(raw);
  if (request.load)
    return bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
      const std::string_view value = bare_value(request, i);
      if (!db->Put({}, key, {value.data(), value.size()}).ok()) bare_failure("put");
      return 0;
    });
  std::string value;
  return bare_loop(request, [&](const std::string& key, uint64_t) {
    if (!db->Get({}, key, &value).ok()) bare_failure("get " + key);
    return value.size();
  });
}

}  // namespace opjoule
