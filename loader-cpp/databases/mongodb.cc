// MongoDB: one document a row, as YCSB's own binding stores it, in collection `usertable` of
// database `ycsb`:
//
//   {_id: "user6284781860667377211", field0: BinData(0, ...), field1: BinData(0, ...), ...}
//
// --path is the server's address (mongodb://localhost:27017). A document in collection `opjoule` of
// the same database says what wrote the rows; a `usertable` without it is never dropped. Habits:
// insert of an existing key is kExists; an update sets the changed fields and can tell a missing
// key. Writes wait until the server has taken them (w=1), with durability=sync until they are in
// its synced journal (j=true). No operation is tried again: after a time-out, which is counted, it
// has failed. The server's background work is not seen; settle asks the server to fsync, if it can.
#include "databases/mongodb_connection.h"
#include "databases/mongodb_server.h"
#include "databases/shared/marker.h"
#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {

const Engine& mongodb_engine();

namespace {

constexpr int64_t kCommandNotFound = 59;

const std::vector<PropertyRule>& rules() {
  static const std::vector<PropertyRule> all = {
      durability_rule(),
      {"mongodb.database", "ycsb", "the server's database to use"},
      {"mongodb.connect_timeout_ms", "5000", "how long a server is looked for"},
      {"mongodb.socket_timeout_ms", "60000", "how long an answer is waited for"},
  };
  return all;
}

bson_t* with_key(Bson& bson, std::string_view key) {
  bson_t* document = bson.empty();
  bson_append_utf8(document, "_id", 3, key.data(), static_cast<int>(key.size()));
  return document;
}

class MongoClient : public Client {
 public:
  Status open(const MongoOptions& options) {
    if (Status status = connection_.open(options); !status.is_ok()) return status;
    BSON_APPEND_INT64(one_.empty(), "limit", 1);
    return Status::ok();
  }

  Status read(std::string_view key, FieldChoice fields, Row& out) override {
    const bson_t* options = fields.all ? one_.get() : only(fields.number, 1);
    const MongoOwned<mongoc_cursor_t> cursor(mongoc_collection_find_with_opts(
        connection_.rows(), with_key(filter_, key), options, nullptr));
    const bson_t* found = nullptr;
    if (mongoc_cursor_next(cursor.get(), &found)) return take_fields(found, out);
    bson_error_t error;
    return mongoc_cursor_error(cursor.get(), &error) ? failed(error) : Status::not_found();
  }

  Status insert(std::string_view key, const Row& row) override {
    bson_t* document = with_key(filter_, key);
    append_fields(document, row);
    bson_error_t error;
    return mongoc_collection_insert_one(connection_.rows(), document, nullptr, nullptr, &error)
               ? Status::ok()
               : failed(error);
  }

  Status update(std::string_view key, const Row& changed, bool) override {
    bson_t* change = change_.empty();
    bson_t set;
    BSON_APPEND_DOCUMENT_BEGIN(change, "$set", &set);
    append_fields(&set, changed);
    bson_append_document_end(change, &set);
    bson_error_t error;
    if (!mongoc_collection_update_one(connection_.rows(), with_key(filter_, key), change, nullptr,
                                      reply_.to_be_initialised(), &error))
      return failed(error);
    return integer_in(reply_.get(), "matchedCount") == 0 ? Status::not_found() : Status::ok();
  }

  Status scan(std::string_view start, uint64_t limit, FieldChoice fields,
              const Visitor& visit) override {
    if (limit == 0) return Status::ok();
    bson_t* filter = filter_.empty();
    bson_t from;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &from);
    bson_append_utf8(&from, "$gte", 4, start.data(), static_cast<int>(start.size()));
    bson_append_document_end(filter, &from);
    bson_t* options = fields.all ? limited(limit) : only(fields.number, limit);
    bson_t sort;
    BSON_APPEND_DOCUMENT_BEGIN(options, "sort", &sort);
    BSON_APPEND_INT32(&sort, "_id", 1);
    bson_append_document_end(options, &sort);
    const MongoOwned<mongoc_cursor_t> cursor(
        mongoc_collection_find_with_opts(connection_.rows(), filter, options, nullptr));
    return visit_all(cursor.get(), visit);
  }

  Status remove(std::string_view key, bool) override {
    bson_error_t error;
    if (!mongoc_collection_delete_one(connection_.rows(), with_key(filter_, key), nullptr,
                                      reply_.to_be_initialised(), &error))
      return failed(error);
    return integer_in(reply_.get(), "deletedCount") == 0 ? Status::not_found() : Status::ok();
  }

  [[nodiscard]] RetryCounts retries() const override { return retries_; }

 private:
  Status failed(const bson_error_t& error) {
    if (is_timeout(error)) ++retries_.timeout;
    return mongo_status(error);
  }

  bson_t* limited(uint64_t limit) {
    bson_t* options = options_.empty();
    BSON_APPEND_INT64(options, "limit", static_cast<int64_t>(limit));
    return options;
  }

  bson_t* only(uint16_t field, uint64_t limit) {
    bson_t* options = limited(limit);
    bson_t projection;
    BSON_APPEND_DOCUMENT_BEGIN(options, "projection", &projection);
    BSON_APPEND_INT32(&projection, ("field" + std::to_string(field)).c_str(), 1);
    bson_append_document_end(options, &projection);
    return options;
  }

  Status visit_all(mongoc_cursor_t* cursor, const Visitor& visit) {
    const bson_t* found = nullptr;
    while (mongoc_cursor_next(cursor, &found)) {
      bson_iter_t id;
      uint32_t length = 0;
      if (!bson_iter_init_find(&id, found, "_id") || !BSON_ITER_HOLDS_UTF8(&id))
        return {StatusCode::kCorrupt, "mongodb: a stored document has no text as its _id"};
      if (Status status = take_fields(found, scanned_); !status.is_ok()) return status;
      const char* key = bson_iter_utf8(&id, &length);
      visit({key, length}, scanned_);
    }
    bson_error_t error;
    return mongoc_cursor_error(cursor, &error) ? failed(error) : Status::ok();
  }

  MongoConnection connection_;
  Bson filter_, change_, options_, one_, reply_;
  Row scanned_;
  RetryCounts retries_;
};

class MongoDatabase : public Database {
 public:
  Status open(const OpenRequest& request, std::string_view version);

  std::unique_ptr<Client> client(Status& status) override {
    auto client = std::make_unique<MongoClient>();
    status = client->open(options_);
    if (!status.is_ok()) return nullptr;
    return client;
  }
  Status settle(double limit_s, bool* settled) override;
  [[nodiscard]] bool can_settle() const override { return can_settle_; }
  Status count(uint64_t* rows) override;
  [[nodiscard]] uint64_t size_on_disk() const override;
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override { return Status::ok(); }

 private:
  Status find_marker(Marker* found);
  Status make_new(const OpenRequest& request, const Marker& asked, bool marked);
  void read_server();

  MongoOptions options_;
  MongoConnection connection_;
  EventSink* events_ = nullptr;
  std::map<std::string, std::string> settings_;
  bool can_settle_ = true;
};

Status MongoDatabase::open(const OpenRequest& request, std::string_view version) {
  Options options("mongodb", *request.properties, rules());
  options_.journaled = options.sync();
  options_.database = request.properties->text("mongodb.database", "ycsb");
  const int64_t connect_ms = options.integer("mongodb.connect_timeout_ms", 1, 3'600'000);
  const int64_t socket_ms = options.integer("mongodb.socket_timeout_ms", 1, 3'600'000);
  if (!options.status().is_ok()) return options.status();
  if (!request.path.starts_with("mongodb://"))
    return {
        StatusCode::kBadInput,
        "--path " + request.path + ": expected a server's address as in mongodb://localhost:27017"};
  const bool has_query = request.path.find('?') != std::string::npos;
  const bool has_slash = request.path.find('/', 10) != std::string::npos;
  options_.uri = request.path +
                 (has_query   ? "&"
                  : has_slash ? "?"
                              : "/?") +
                 "serverSelectionTimeoutMS=" + std::to_string(connect_ms) +
                 "&connectTimeoutMS=" + std::to_string(connect_ms) +
                 "&socketTimeoutMS=" + std::to_string(socket_ms) +
                 // The driver would try each read again by itself, and take that for one operation.
                 "&retryReads=false&retryWrites=false";
  events_ = request.events;
  settings_ = std::move(options.settings());
  settings_["updates"] = "in place";
  settings_["mongodb.database"] = options_.database;
  if (Status status = connection_.open(options_); !status.is_ok()) return status;

  const Marker asked{"mongodb", std::string(version), kRowLayout, request.field_count};
  Marker found;
  // The first command, because only its error says why the server cannot be reached.
  const Status marked = find_marker(&found);
  if (!marked.is_ok() && !marked.is_not_found()) return marked;
  read_server();
  Status status = Status::ok();
  if (marked.is_ok() && (!request.create || request.resume))
    status = check_marker(request.path, found, asked);
  else if (!request.create)
    status = {StatusCode::kBadInput,
              "no records of this loader at " + request.path + ": load them first"};
  else
    status = make_new(request, asked, marked.is_ok());
  if (!status.is_ok()) return status;
  return name_server(connection_, options_.database, &settings_["mongodb.server"],
                     &settings_["mongodb.server_version"]);
}

Status MongoDatabase::find_marker(Marker* found) {
  Bson filter;
  BSON_APPEND_UTF8(filter.empty(), "_id", "usertable");
  const MongoOwned<mongoc_cursor_t> cursor(
      mongoc_collection_find_with_opts(connection_.marker(), filter.get(), nullptr, nullptr));
  const bson_t* document = nullptr;
  if (mongoc_cursor_next(cursor.get(), &document)) {
    found->engine = text_in(document, "engine");
    found->engine_version = text_in(document, "engine_version");
    found->row_layout = integer_in(document, "record_layout");
    found->field_count = integer_in(document, "field_count");
    return Status::ok();
  }
  bson_error_t error;
  return mongoc_cursor_error(cursor.get(), &error) ? mongo_status(error) : Status::not_found();
}

Status MongoDatabase::make_new(const OpenRequest& request, const Marker& asked, bool marked) {
  uint64_t there = 0;
  if (Status status = count(&there); !status.is_ok()) return status;
  if (there > 0 && !marked)
    return {StatusCode::kBadInput,
            "database " + options_.database + " at " + request.path +
                " has a collection usertable that no load of this loader wrote: "
                "nothing was dropped; choose another mongodb.database"};
  bson_error_t error;
  if (marked && !mongoc_collection_drop(connection_.rows(), &error) && there > 0)
    return mongo_status(error);
  Bson filter;
  Bson marker;
  BSON_APPEND_UTF8(filter.empty(), "_id", "usertable");
  bson_t* document = marker.empty();
  BSON_APPEND_UTF8(document, "_id", "usertable");
  BSON_APPEND_UTF8(document, "engine", asked.engine.c_str());
  BSON_APPEND_UTF8(document, "engine_version", asked.engine_version.c_str());
  BSON_APPEND_INT64(document, "record_layout", asked.row_layout);
  BSON_APPEND_INT64(document, "field_count", asked.field_count);
  Bson upsert;
  BSON_APPEND_BOOL(upsert.empty(), "upsert", true);
  return mongoc_collection_replace_one(connection_.marker(), filter.get(), document, upsert.get(),
                                       nullptr, &error)
             ? Status::ok()
             : mongo_status(error);
}

// The server's own settings; where it does not know the command, the setting is left out.
void MongoDatabase::read_server() {
  Bson command;
  Bson reply;
  BSON_APPEND_INT32(command.empty(), "serverStatus", 1);
  if (connection_.command("admin", command.get(), &reply).is_ok())
    if (const std::string name = text_in(reply.get(), "storageEngine.name"); !name.empty())
      settings_["mongodb.storage_engine"] = name;
  settings_["mongodb.write_concern"] = options_.journaled ? "w=1, j=true" : "w=1";
}

Status MongoDatabase::settle(double, bool* settled) {
  Bson command;
  Bson reply;
  BSON_APPEND_INT32(command.empty(), "fsync", 1);
  const Status status = timed(events_, EventKind::kCheckpoint, "fsync command",
                              [&] { return connection_.command("admin", command.get(), &reply); });
  *settled = status.is_ok();
  if (integer_in(reply.get(), "code") != kCommandNotFound) return status;
  can_settle_ = false;
  settings_["mongodb.settle"] = "not settled: the server has no fsync command";
  return Status::ok();
}

Status MongoDatabase::count(uint64_t* rows) {
  Bson all;
  bson_error_t error;
  const int64_t found = mongoc_collection_count_documents(connection_.rows(), all.empty(), nullptr,
                                                          nullptr, nullptr, &error);
  if (found < 0) return mongo_status(error);
  *rows = static_cast<uint64_t>(found);
  return Status::ok();
}

// Storage and indexes of the collection, as the server tells; 0 where it does not. Uses a
// connection of its own, since close() may have ended the other.
uint64_t MongoDatabase::size_on_disk() const {
  MongoConnection client;
  if (!client.open(options_).is_ok()) return 0;
  Bson command;
  Bson reply;
  BSON_APPEND_UTF8(command.empty(), "collStats", "usertable");
  if (!client.command(options_.database.c_str(), command.get(), &reply).is_ok()) return 0;
  return static_cast<uint64_t>(integer_in(reply.get(), "storageSize") +
                               integer_in(reply.get(), "totalIndexSize"));
}

std::unique_ptr<Database> open_mongodb(const OpenRequest& request, Status& status) {
  auto database = std::make_unique<MongoDatabase>();
  status = database->open(request, mongodb_engine().version);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace

const Engine& mongodb_engine() {
  static const Engine engine{"mongodb", mongoc_get_version(), rules(), open_mongodb, true};
  return engine;
}

}  // namespace opjoule
