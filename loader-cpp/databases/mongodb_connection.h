// One connection to a MongoDB server, and the BSON the loader exchanges over it.
//
// The library is built without TLS, passwords and compression: it is meant for a server on the
// board or on a bench network. Thread safety: none; each client has a connection of its own.
#pragma once

#include <mongoc/mongoc.h>

#include <memory>
#include <string>

#include "loader/row.h"
#include "loader/status.h"

namespace opjoule {

struct MongoDelete {
  void operator()(mongoc_client_t* client) const { mongoc_client_destroy(client); }
  void operator()(mongoc_collection_t* collection) const { mongoc_collection_destroy(collection); }
  void operator()(mongoc_cursor_t* cursor) const { mongoc_cursor_destroy(cursor); }
  void operator()(mongoc_uri_t* uri) const { mongoc_uri_destroy(uri); }
};
template <typename T>
using MongoOwned = std::unique_ptr<T, MongoDelete>;

// A BSON document that is emptied and filled again without giving up its memory.
class Bson {
 public:
  Bson() { bson_init(&bson_); }
  ~Bson() { bson_destroy(&bson_); }
  Bson(const Bson&) = delete;
  Bson& operator=(const Bson&) = delete;
  bson_t* empty() {
    bson_reinit(&bson_);
    return &bson_;
  }
  // Uninitialised, for a call that initialises it.
  bson_t* to_be_initialised() {
    bson_destroy(&bson_);
    return &bson_;
  }
  [[nodiscard]] const bson_t* get() const { return &bson_; }

 private:
  bson_t bson_;
};

struct MongoOptions {
  std::string uri;
  std::string database;
  bool journaled =
      false;  // durability=sync: the server answers a write once it is in its synced journal
};

// kNoSpace, kExists, kBusy, kIo...: "mongodb: " and the message of the server or the driver.
Status mongo_status(const bson_error_t& error);
bool is_timeout(const bson_error_t& error);

class MongoConnection {
 public:
  Status open(const MongoOptions& options);
  // Runs a command on the loader's database, or on admin. The reply is kept in `reply`.
  Status command(const char* database, const bson_t* command, Bson* reply);

  [[nodiscard]] mongoc_client_t* client() const { return client_.get(); }
  // Rows: the collection of YCSB's binding. Marker: says which loader wrote them.
  [[nodiscard]] mongoc_collection_t* rows() const { return rows_.get(); }
  [[nodiscard]] mongoc_collection_t* marker() const { return marker_.get(); }

 private:
  MongoOwned<mongoc_client_t> client_;
  MongoOwned<mongoc_collection_t> rows_;
  MongoOwned<mongoc_collection_t> marker_;
};

// Appends each field as a binary value named field0, field1, ...
void append_fields(bson_t* document, const Row& row);
// The fields of a stored document. kCorrupt where a field is no binary value.
Status take_fields(const bson_t* document, Row& out);

}  // namespace opjoule
