// LMDB with the loader's default settings: no sync, one transaction an operation.
#include <lmdb.h>

#include "bench/bare.h"

namespace opjoule {
namespace {

void check(int result) {
  if (result != 0) bare_failure(mdb_strerror(result));
}

MDB_val val(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

BareResult load(MDB_env* env, MDB_dbi dbi, const BareRequest& request) {
  return bare_loop(request, [&](const std::string& name, uint64_t i) -> uint64_t {
    MDB_txn* txn = nullptr;
    check(mdb_txn_begin(env, nullptr, 0, &txn));
    MDB_val key = val(name);
    MDB_val value = val(bare_value(request, i));
    check(mdb_put(txn, dbi, &key, &value, 0));
    check(mdb_txn_commit(txn));
    return 0;
  });
}

// The value is copied out, as any use of it beyond its transaction has to.
BareResult read(MDB_env* env, MDB_dbi dbi, const BareRequest& request) {
  MDB_txn* txn = nullptr;
  check(mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn));
  mdb_txn_reset(txn);
  std::string copy;
  const BareResult result = bare_loop(request, [&](const std::string& name, uint64_t) {
    check(mdb_txn_renew(txn));
    MDB_val key = val(name);
    MDB_val value;
    check(mdb_get(txn, dbi, &key, &value));
    copy.assign(static_cast<const char*>(value.mv_data), value.mv_size);
    mdb_txn_reset(txn);
    return copy.size();
  });
  mdb_txn_abort(txn);
  return result;
}

}  // namespace

BareResult bare_lmdb(const BareRequest& request) {
  MDB_env* env = nullptr;
  check(mdb_env_create(&env));
  check(mdb_env_set_mapsize(env, size_t{64} << 30));
  check(mdb_env_open(env, request.path.c_str(), MDB_NOTLS | MDB_NOSYNC, 0644));
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  check(mdb_txn_begin(env, nullptr, 0, &txn));
  check(mdb_dbi_open(txn, nullptr, 0, &dbi));
  check(mdb_txn_commit(txn));
  const BareResult result = request.load ? load(env, dbi, request) : read(env, dbi, request);
  mdb_env_close(env);
  return result;
}

}  // namespace opjoule
