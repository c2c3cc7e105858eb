// SQLite with the loader's default settings: rollback journal, synchronous off, one transaction a
// write; or, by BARE_SQLITE_JOURNAL=wal in the environment, the write-ahead log. The table is the
// loader's, so that either reads the other's.
#include <sqlite3.h>

#include <cstdlib>
#include <cstring>

#include "bench/bare.h"

namespace opjoule {
namespace {

std::string columns(uint32_t fields, const std::string& suffix) {
  std::string text;
  for (uint32_t i = 0; i < fields; ++i)
    text += (i == 0 ? "" : ", ") + ("FIELD" + std::to_string(i)) + suffix;
  return text;
}

sqlite3_stmt* prepare(sqlite3* db, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    bare_failure(sqlite3_errmsg(db));
  return statement;
}

BareResult load(sqlite3* db, const BareRequest& request) {
  std::string marks = "?";
  for (uint32_t i = 0; i < request.fields; ++i) marks += ", ?";
  sqlite3_stmt* insert = prepare(db, "INSERT INTO usertable VALUES (" + marks + ")");
  const int field_bytes = static_cast<int>(request.value_bytes / request.fields);
  const BareResult result = bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
    const char* value = bare_value(request, i).data();
    sqlite3_bind_text(insert, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    for (uint32_t field = 0; field < request.fields; ++field)
      sqlite3_bind_blob(insert, static_cast<int>(field) + 2, value + field * field_bytes,
                        field_bytes, SQLITE_STATIC);
    if (sqlite3_step(insert) != SQLITE_DONE) bare_failure(sqlite3_errmsg(db));
    sqlite3_reset(insert);
    return 0;
  });
  sqlite3_finalize(insert);
  return result;
}

BareResult update(sqlite3* db, const BareRequest& request) {
  sqlite3_stmt* update =
      prepare(db, "UPDATE usertable SET " + columns(request.fields, "=?") + " WHERE YCSB_KEY=?");
  const int field_bytes = static_cast<int>(request.value_bytes / request.fields);
  const int last = static_cast<int>(request.fields) + 1;
  const BareResult result = bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
    const char* value = bare_value(request, i).data();
    for (int field = 1; field < last; ++field)
      sqlite3_bind_blob(update, field, value + (field - 1) * field_bytes, field_bytes,
                        SQLITE_STATIC);
    sqlite3_bind_text(update, last, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    if (sqlite3_step(update) != SQLITE_DONE) bare_failure(sqlite3_errmsg(db));
    sqlite3_reset(update);
    return 0;
  });
  sqlite3_finalize(update);
  return result;
}

BareResult read(sqlite3* db, const BareRequest& request) {
  sqlite3_stmt* select =
      prepare(db, "SELECT " + columns(request.fields, "") + " FROM usertable WHERE YCSB_KEY=?");
  std::string value(request.value_bytes, '\0');
  const BareResult result = bare_loop(request, [&](const std::string& key, uint64_t) {
    sqlite3_bind_text(select, 1, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
    if (sqlite3_step(select) != SQLITE_ROW) bare_failure("no row for " + key);
    uint64_t bytes = 0;
    for (uint32_t field = 0; field < request.fields; ++field) {
      const void* from = sqlite3_column_blob(select, static_cast<int>(field));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(select, static_cast<int>(field)));
      std::memcpy(value.data() + bytes, from, size);
      bytes += size;
    }
    sqlite3_reset(select);
    return bytes;
  });
  sqlite3_finalize(select);
  return result;
}

}  // namespace

BareResult bare_sqlite(const BareRequest& request) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  sqlite3* db = nullptr;
  const std::string file = request.path + "/usertable.sqlite";
  if (sqlite3_open_v2(file.c_str(), &db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK)
    bare_failure(sqlite3_errmsg(db));
  const char* journal = std::getenv("BARE_SQLITE_JOURNAL");
  const std::string settings = std::string("PRAGMA journal_mode=") +
                               (journal == nullptr ? "delete" : journal) +
                               "; PRAGMA synchronous=off; CREATE TABLE IF NOT EXISTS usertable "
                               "(YCSB_KEY VARCHAR(255) PRIMARY KEY, " +
                               columns(request.fields, " BLOB") + ")";
  if (sqlite3_exec(db, settings.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    bare_failure(sqlite3_errmsg(db));
  const auto run = request.phase == BarePhase::kLoad   ? load
                   : request.phase == BarePhase::kRead ? read
                                                       : update;
  const BareResult result = run(db, request);
  sqlite3_close(db);
  return result;
}

}  // namespace opjoule
