// LevelDB with the loader's default settings, which are its own and Snappy.
#include <leveldb/cache.h>
#include <leveldb/db.h>

#include <memory>

#include "bench/bare.h"

namespace opjoule {

BareResult bare_leveldb(const BareRequest& request) {
  leveldb::Options options;
  options.create_if_missing = request.phase == BarePhase::kLoad;
  const std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(8 << 20));
  options.block_cache = cache.get();
  leveldb::DB* raw = nullptr;
  if (const auto status = leveldb::DB::Open(options, request.path, &raw); !status.ok())
    bare_failure(status.ToString());
  const std::unique_ptr<leveldb::DB> db(raw);
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
