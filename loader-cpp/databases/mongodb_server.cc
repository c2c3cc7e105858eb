#include "databases/mongodb_server.h"

namespace opjoule {
namespace {

bool find_in(const bson_t* document, const char* dotted_name, bson_iter_t* found) {
  bson_iter_t at;
  return bson_iter_init(&at, document) && bson_iter_find_descendant(&at, dotted_name, found);
}

// A commit of mongod's source: 40 hexadecimal digits that are not all the same.
bool is_commit(const std::string& text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string::npos &&
         text.find_first_not_of(text[0]) != std::string::npos;
}

// What mongod of every version from 3.6 on says of its build.
bool is_build_of_mongod(const bson_t* info) {
  for (const char* name : {"javascriptEngine", "allocator", "buildEnvironment.cc",
                           "buildEnvironment.target_arch", "buildEnvironment.target_os"})
    if (text_in(info, name).empty()) return false;
  bson_iter_t engines;
  return is_commit(text_in(info, "gitVersion")) && find_in(info, "storageEngines", &engines) &&
         BSON_ITER_HOLDS_ARRAY(&engines);
}

Status server_status(MongoConnection& connection, Bson* reply) {
  Bson command;
  BSON_APPEND_INT32(command.empty(), "serverStatus", 1);
  return connection.command("admin", command.get(), reply);
}

// Calls of WiredTiger's cursors that look for a key, since the server's start; -1 where it has no
// such statistics.
Status engine_searches(MongoConnection& connection, int64_t* searches) {
  Bson reply;
  *searches = -1;
  if (Status status = server_status(connection, &reply); !status.is_ok()) return status;
  bson_iter_t calls;
  if (integer_in(reply.get(), "wiredTiger.cache.maximum bytes configured") > 0 &&
      find_in(reply.get(), "wiredTiger.transaction.transaction begins", &calls) &&
      find_in(reply.get(), "wiredTiger.block-manager.blocks written", &calls) &&
      find_in(reply.get(), "wiredTiger.cursor.cursor search calls", &calls))
    *searches = bson_iter_as_int64(&calls) +
                integer_in(reply.get(), "wiredTiger.cursor.cursor search near calls");
  return Status::ok();
}

bool is_table(MongoConnection& connection, const std::string& database) {
  Bson command;
  Bson reply;
  BSON_APPEND_UTF8(command.empty(), "collStats", mongoc_collection_get_name(connection.marker()));
  return connection.command(database.c_str(), command.get(), &reply).is_ok() &&
         text_in(reply.get(), "wiredTiger.uri").starts_with("statistics:table:");
}

Status look_up_marker(MongoConnection& connection) {
  Bson filter;
  BSON_APPEND_UTF8(filter.empty(), "_id", "usertable");
  const MongoOwned<mongoc_cursor_t> cursor(
      mongoc_collection_find_with_opts(connection.marker(), filter.get(), nullptr, nullptr));
  const bson_t* found = nullptr;
  bson_error_t error;
  mongoc_cursor_next(cursor.get(), &found);
  return mongoc_cursor_error(cursor.get(), &error) ? mongo_status(error) : Status::ok();
}

// What the server lacks that every mongod has; empty: it is mongod. Stand-ins copy single fields of
// mongod's answers. They have no statistics of its storage engine that count what they are asked,
// and no WiredTiger table under a collection.
Status proof_lacks(MongoConnection& connection, const std::string& database, const bson_t* build,
                   std::string* lacks) {
  constexpr int kLookUps = 8;
  int64_t before = -1;
  int64_t after = -1;
  *lacks = "its build information is incomplete";
  if (!is_build_of_mongod(build)) return Status::ok();
  *lacks = "it has no statistics of WiredTiger";
  if (!engine_searches(connection, &before).is_ok() || before < 0) return Status::ok();
  *lacks = "its collections are no tables of WiredTiger";
  if (!is_table(connection, database)) return Status::ok();
  for (int i = 0; i < kLookUps; ++i)
    if (Status status = look_up_marker(connection); !status.is_ok()) return status;
  if (Status status = engine_searches(connection, &after); !status.is_ok()) return status;
  *lacks = after < before + kLookUps ? "WiredTiger does not count its reads" : "";
  return Status::ok();
}

}  // namespace

std::string text_in(const bson_t* document, const char* dotted_name) {
  bson_iter_t found;
  return find_in(document, dotted_name, &found) && BSON_ITER_HOLDS_UTF8(&found)
             ? bson_iter_utf8(&found, nullptr)
             : "";
}

int64_t integer_in(const bson_t* document, const char* dotted_name) {
  bson_iter_t found;
  return find_in(document, dotted_name, &found) ? bson_iter_as_int64(&found) : 0;
}

Status name_server(MongoConnection& connection, const std::string& database, std::string* name,
                   std::string* version) {
  Bson command;
  Bson reply;
  BSON_APPEND_INT32(command.empty(), "buildInfo", 1);
  if (Status status = connection.command("admin", command.get(), &reply); !status.is_ok())
    return status;
  *version = text_in(reply.get(), "version");
  std::string lacks;
  if (Status status = proof_lacks(connection, database, reply.get(), &lacks); !status.is_ok())
    return status;
  if (lacks.empty())
    *name = "mongod " + text_in(reply.get(), "gitVersion");
  else if (!text_in(reply.get(), "ferretdbVersion").empty())
    *name = "FerretDB: not mongod, a stand-in that speaks its protocol";
  else if (!text_in(reply.get(), "secantusVersion").empty())
    *name = "SecantusDB: not mongod, a stand-in that speaks its protocol and stores in WiredTiger";
  else
    *name = "not mongod: a stand-in that speaks its protocol (" + lacks + ")";
  return Status::ok();
}

}  // namespace opjoule
