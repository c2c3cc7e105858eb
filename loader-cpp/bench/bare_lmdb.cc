// LMDB with the loader's default settings: no sync, one transaction an operation.
#include <lmdb.h>

#include <optional>

#include "bench/bare.h"

namespace opjoule {
namespace {

void check_lmdb(int result) {
  if (result != 0) bare_failure(mdb_strerror(result));
}

MDB_val val(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

// One transaction a write, an update's get included; one read transaction, renewed for each read,
// whose value is copied out, as any use of it beyond its transaction has to.
class BareLmdb {
 public:
  BareLmdb(MDB_env* env, MDB_dbi dbi) : env_(env), dbi_(dbi) {
    check_lmdb(mdb_txn_begin(env, nullptr, MDB_RDONLY, &reader_));
    mdb_txn_reset(reader_);
  }
  ~BareLmdb() { mdb_txn_abort(reader_); }
  BareLmdb(const BareLmdb&) = delete;
  BareLmdb& operator=(const BareLmdb&) = delete;

  void get(const std::string& name, std::string* row) {
    check_lmdb(mdb_txn_renew(reader_));
    take(reader_, name, row);
    mdb_txn_reset(reader_);
  }
  void put(const std::string& name, std::string_view row) {
    MDB_txn* txn = nullptr;
    check_lmdb(mdb_txn_begin(env_, nullptr, 0, &txn));
    write(txn, name, row);
  }
  void update(const std::string& name, std::string_view value, std::string& row) {
    MDB_txn* txn = nullptr;
    check_lmdb(mdb_txn_begin(env_, nullptr, 0, &txn));
    take(txn, name, &row);
    bare_merge(value, row);
    write(txn, name, row);
  }

 private:
  void take(MDB_txn* txn, const std::string& name, std::string* row) const {
    MDB_val key = val(name);
    MDB_val value;
    check_lmdb(mdb_get(txn, dbi_, &key, &value));
    row->assign(static_cast<const char*>(value.mv_data), value.mv_size);
  }
  void write(MDB_txn* txn, const std::string& name, std::string_view row) const {
    MDB_val key = val(name);
    MDB_val value = val(row);
    check_lmdb(mdb_put(txn, dbi_, &key, &value, 0));
    check_lmdb(mdb_txn_commit(txn));
  }

  MDB_env* env_;
  MDB_dbi dbi_;
  MDB_txn* reader_ = nullptr;
};

BareResult run(BareLmdb& engine, const BareRequest& request) {
  std::string row;
  if (request.phase == BarePhase::kUpdate)
    return bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
      engine.update(key, bare_value(request, i), row);
      return 0;
    });
  return bare_pairs(
      request, [&](const std::string& key, std::string* value) { engine.get(key, value); },
      [&](const std::string& key, std::string_view value) { engine.put(key, value); });
}

}  // namespace

BareResult bare_lmdb(const BareRequest& request) {
  MDB_env* env = nullptr;
  check_lmdb(mdb_env_create(&env));
  check_lmdb(mdb_env_set_mapsize(env, size_t{64} << 30));
  check_lmdb(mdb_env_open(env, request.path.c_str(), MDB_NOTLS | MDB_NOSYNC, 0644));
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  check_lmdb(mdb_txn_begin(env, nullptr, 0, &txn));
  check_lmdb(mdb_dbi_open(txn, nullptr, 0, &dbi));
  check_lmdb(mdb_txn_commit(txn));
  std::optional<BareLmdb> engine(std::in_place, env, dbi);
  const BareResult result = run(*engine, request);
  engine.reset();
  mdb_env_close(env);
  return result;
}

}  // namespace opjoule
