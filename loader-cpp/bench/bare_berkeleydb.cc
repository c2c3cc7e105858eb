// Berkeley DB with the loader's default settings for one thread: a B-tree without transactions, 256
// KiB cache.
#include <db.h>

#include <cstring>

#include "bench/bare.h"

namespace opjoule {
namespace {

void check_berkeleydb(int result) {
  if (result != 0) bare_failure(db_strerror(result));
}

DBT dbt(std::string_view text) {
  DBT out;
  std::memset(&out, 0, sizeof out);
  out.data = const_cast<char*>(text.data());
  out.size = static_cast<uint32_t>(text.size());
  return out;
}

}  // namespace

BareResult bare_berkeleydb(const BareRequest& request) {
  DB_ENV* env = nullptr;
  DB* db = nullptr;
  check_berkeleydb(db_env_create(&env, 0));
  check_berkeleydb(env->set_cachesize(env, 0, 262144, 1));
  check_berkeleydb(
      env->open(env, request.path.c_str(), DB_CREATE | DB_PRIVATE | DB_INIT_MPOOL, 0644));
  check_berkeleydb(db_create(&db, env, 0));
  check_berkeleydb(db->set_pagesize(db, 4096));
  check_berkeleydb(db->open(db, nullptr, "usertable.db", nullptr, DB_BTREE, DB_CREATE, 0644));
  const BareResult result = bare_pairs(
      request,
      [&](const std::string& name, std::string* row) {
        DBT key = dbt(name);
        DBT value;
        int got = 0;
        do {  // once more where the row is longer than the one before
          value = dbt(*row);
          value.flags = DB_DBT_USERMEM;
          value.ulen = value.size;
          got = db->get(db, nullptr, &key, &value, 0);
          row->resize(value.size);
        } while (got == DB_BUFFER_SMALL);
        check_berkeleydb(got);
      },
      [&](const std::string& name, std::string_view row) {
        DBT key = dbt(name);
        DBT value = dbt(row);
        check_berkeleydb(db->put(db, nullptr, &key, &value, 0));
      });
  check_berkeleydb(db->close(db, 0));
  check_berkeleydb(env->close(env, 0));
  return result;
}

}  // namespace opjoule
