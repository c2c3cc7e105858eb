// LevelDB with the loader's default settings, which are its own and Snappy.
#include <leveldb/cache.h>
#include <leveldb/db.h>

#include <memory>

#include "bench/bare.h"

namespace opjoule {

BareResult bare_leveldb(const BareRequest& request) {
  leveldb::Options options;
  options.create_if_missing = request.load;
  const std::unique_ptr<leveldb::Cache> cache(leveldb::NewLRUCache(8 << 20));
  options.block_cache = cache.get();
  leveldb::DB* raw = nullptr;
  if (const auto status = leveldb::DB::Open(options, request.path, &raw); !status.ok())
    bare_failure(status.ToString());
  const std::unique_ptr<leveldb::DB> db(raw);
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
