#include "databases/mongodb_connection.h"

#include <charconv>
#include <cstring>
#include <vector>

namespace opjoule {
namespace {

constexpr std::string_view kFieldPrefix = "field";
constexpr int kDuplicateKey = 11000;
constexpr int kOutOfDiskSpace = 14031;

void start_driver() {
  static const bool once = [] {
    mongoc_log_set_handler([](mongoc_log_level_t, const char*, const char*, void*) {}, nullptr);
    mongoc_init();
    return true;
  }();
  (void)once;
}

std::string field_name(uint16_t number) {
  return std::string(kFieldPrefix) + std::to_string(number);
}

bool field_number(std::string_view name, uint16_t* number) {
  if (!name.starts_with(kFieldPrefix)) return false;
  name.remove_prefix(kFieldPrefix.size());
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), *number);
  return error == std::errc() && end == name.data() + name.size();
}

}  // namespace

bool is_timeout(const bson_error_t& error) {
  return error.domain == MONGOC_ERROR_STREAM || error.domain == MONGOC_ERROR_SERVER_SELECTION;
}

Status mongo_status(const bson_error_t& error) {
  StatusCode code = StatusCode::kIo;
  if (error.code == kDuplicateKey) code = StatusCode::kExists;
  if (error.code == kOutOfDiskSpace || std::strstr(error.message, "No space left") != nullptr)
    code = StatusCode::kNoSpace;
  std::string words = error.message;
  for (char& c : words)
    if (c == '\n') c = ' ';
  return {code, "mongodb: " + words};
}

Status MongoConnection::open(const MongoOptions& options) {
  start_driver();
  bson_error_t error;
  const MongoOwned<mongoc_uri_t> uri(mongoc_uri_new_with_error(options.uri.c_str(), &error));
  if (uri == nullptr)
    return {StatusCode::kBadInput, "--path " + options.uri +
                                       ": expected a server's address as in "
                                       "mongodb://localhost:27017 (" +
                                       error.message + ")"};
  client_.reset(mongoc_client_new_from_uri_with_error(uri.get(), &error));
  if (client_ == nullptr) return mongo_status(error);
  mongoc_client_set_error_api(client_.get(), MONGOC_ERROR_API_VERSION_2);
  mongoc_client_set_appname(client_.get(), "opjoule-loader");
  mongoc_write_concern_t* concern = mongoc_write_concern_new();
  mongoc_write_concern_set_w(concern, 1);
  if (options.journaled) mongoc_write_concern_set_journal(concern, true);
  mongoc_client_set_write_concern(client_.get(), concern);
  mongoc_write_concern_destroy(concern);
  const char* database = options.database.c_str();
  rows_.reset(mongoc_client_get_collection(client_.get(), database, "usertable"));
  marker_.reset(mongoc_client_get_collection(client_.get(), database, "opjoule"));
  return Status::ok();
}

Status MongoConnection::command(const char* database, const bson_t* command, Bson* reply) {
  bson_error_t error;
  const bool done = mongoc_client_command_simple(client_.get(), database, command, nullptr,
                                                 reply->to_be_initialised(), &error);
  return done ? Status::ok() : mongo_status(error);
}

void append_fields(bson_t* document, const Row& row) {
  for (size_t i = 0; i < row.field_count(); ++i) {
    const std::string name = field_name(row.field_number(i));  // short enough not to be allocated
    const std::string_view value = row.value(i);
    bson_append_binary(document, name.c_str(), static_cast<int>(name.size()), BSON_SUBTYPE_BINARY,
                       reinterpret_cast<const uint8_t*>(value.data()),
                       static_cast<uint32_t>(value.size()));
  }
}

Status take_fields(const bson_t* document, Row& out) {
  thread_local std::vector<uint16_t> numbers;
  thread_local std::vector<uint32_t> lengths;
  thread_local std::vector<const uint8_t*> values;
  numbers.clear();
  lengths.clear();
  values.clear();
  bson_iter_t at;
  if (!bson_iter_init(&at, document))
    return {StatusCode::kCorrupt, "mongodb: a stored document is not BSON"};
  while (bson_iter_next(&at)) {
    uint16_t number = 0;
    if (!field_number({bson_iter_key(&at), bson_iter_key_len(&at)}, &number)) continue;
    if (!BSON_ITER_HOLDS_BINARY(&at))
      return {StatusCode::kCorrupt,
              std::string("mongodb: ") + bson_iter_key(&at) + " is no binary value"};
    uint32_t length = 0;
    const uint8_t* value = nullptr;
    bson_iter_binary(&at, nullptr, &length, &value);
    numbers.push_back(number);
    lengths.push_back(length);
    values.push_back(value);
  }
  out.reset(numbers, lengths);
  char* to = out.mutable_values().data();
  for (size_t i = 0; i < values.size(); ++i) {
    if (lengths[i] > 0) std::memcpy(to, values[i], lengths[i]);
    to += lengths[i];
  }
  return Status::ok();
}

}  // namespace opjoule
