// Whether a server of MongoDB's protocol is mongod, and what it says of itself.
//
// Thread safety: none, as the connection's.
#pragma once

#include <mongoc/mongoc.h>

#include <cstdint>
#include <string>

#include "databases/mongodb_connection.h"
#include "loader/status.h"

namespace opjoule {

// Values of a reply by their dotted names; empty or 0 where there is none of that type.
std::string text_in(const bson_t* document, const char* dotted_name);
int64_t integer_in(const bson_t* document, const char* dotted_name);

// `name`: "mongod COMMIT" if the server proves that it is mongod, else "not mongod" with the
// reason, or the stand-in's own name. `version`: as the server says. The marker must be in its
// collection.
Status name_server(MongoConnection& connection, const std::string& database, std::string* name,
                   std::string* version);

}  // namespace opjoule
