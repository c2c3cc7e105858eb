#include "databases/sqlite_client.h"

#include <cstring>

namespace opjoule {
namespace {

std::string column(size_t field) { return "FIELD" + std::to_string(field); }

// Binding results are or-ed together: SQLITE_OK is 0.
int bind_key(sqlite3_stmt* statement, int at, std::string_view key) {
  return sqlite3_bind_text(statement, at, key.data(), static_cast<int>(key.size()), SQLITE_STATIC);
}

// A null pointer would bind NULL, so an empty value must point somewhere.
int bind_value(sqlite3_stmt* statement, int at, std::string_view value) {
  return sqlite3_bind_blob(statement, at, value.empty() ? "" : value.data(),
                           static_cast<int>(value.size()), SQLITE_STATIC);
}

std::string insert_sql(size_t field_count) {
  std::string marks = "?";
  for (size_t i = 0; i < field_count; ++i) marks += ", ?";
  return "INSERT INTO usertable (YCSB_KEY, " + sqlite_columns(field_count) + ") VALUES (" + marks +
         ")";
}

}  // namespace

std::string sqlite_columns(size_t field_count, const std::string& suffix) {
  std::string text;
  for (size_t i = 0; i < field_count; ++i) text += (i == 0 ? "" : ", ") + column(i) + suffix;
  return text;
}

Status SqliteClient::prepare(Kind kind, FieldChoice fields) {
  if (!fields.all && fields.number >= field_count_)
    return {StatusCode::kBadInput, "sqlite: the table has no column " + column(fields.number)};
  SqliteStatement& slot =
      on_fields_[static_cast<int>(kind)][fields.all ? field_count_ : fields.number];
  const std::string suffix = kind == Kind::kUpdate ? "=?" : "";
  const std::string chosen =
      fields.all ? sqlite_columns(field_count_, suffix) : column(fields.number) + suffix;
  std::string sql;
  switch (kind) {
    case Kind::kRead:
      sql = "SELECT " + chosen + " FROM usertable WHERE YCSB_KEY=?";
      break;
    case Kind::kUpdate:
      sql = "UPDATE usertable SET " + chosen + " WHERE YCSB_KEY=?";
      break;
    case Kind::kScan:
      sql = "SELECT YCSB_KEY, " + chosen +
            " FROM usertable WHERE YCSB_KEY>=? ORDER BY YCSB_KEY LIMIT ?";
      break;
  }
  return connection_.prepare(sql, &slot);
}

sqlite3_stmt* SqliteClient::once(SqliteStatement& slot, const char* sql, Status& status) {
  if (!slot) status = connection_.prepare(sql, &slot);
  return slot.get();
}

inline void SqliteClient::take_row(sqlite3_stmt* row, int first_column, FieldChoice fields,
                                   Row& out) {
  if (!fields.all || !take_even_row(row, first_column, out))
    take_any_row(row, first_column, fields, out);
}

// Takes the usual row: all fields, of one length. False if this is another.
inline bool SqliteClient::take_even_row(sqlite3_stmt* row, int first_column, Row& out) {
  const void* column = sqlite3_column_blob(row, first_column);
  const int length = sqlite3_column_bytes(row, first_column);
  if (length == 0 || !out.reset_even(field_count_, static_cast<size_t>(length))) return false;
  char* to = out.mutable_values().data();
  std::memcpy(to, column, static_cast<size_t>(length));
  for (int i = 1; i < field_count_; ++i) {
    column = sqlite3_column_blob(row, first_column + i);
    if (sqlite3_column_bytes(row, first_column + i) != length) return false;
    to += length;
    std::memcpy(to, column, static_cast<size_t>(length));
  }
  return true;
}

// Fields that are NULL in the table are left out.
void SqliteClient::take_any_row(sqlite3_stmt* row, int first_column, FieldChoice fields, Row& out) {
  const int count = fields.all ? field_count_ : 1;
  numbers_.clear();
  lengths_.clear();
  columns_.clear();
  for (int i = 0; i < count; ++i) {
    const void* column = sqlite3_column_blob(row, first_column + i);
    // An empty value has no address either.
    if (column == nullptr && sqlite3_column_type(row, first_column + i) == SQLITE_NULL) continue;
    numbers_.push_back(fields.all ? static_cast<uint16_t>(i) : fields.number);
    lengths_.push_back(static_cast<uint32_t>(sqlite3_column_bytes(row, first_column + i)));
    columns_.push_back(column);
  }
  out.reset(numbers_, lengths_);
  char* to = out.mutable_values().data();
  for (size_t i = 0; i < columns_.size(); to += lengths_[i], ++i)
    if (lengths_[i] > 0) std::memcpy(to, columns_[i], lengths_[i]);
}

Status SqliteClient::read(std::string_view key, FieldChoice fields, Row& out) {
  sqlite3_stmt* const statement = on_fields(Kind::kRead, fields);
  if (statement == nullptr) [[unlikely]] {
    Status status = prepare(Kind::kRead, fields);
    return status.is_ok() ? read(key, fields, out) : std::move(status);
  }
  bind_key(statement, 1, key);
  const Gate::Inside inside = gate_.together();
  const int result = connection_.step(statement);
  if (result == SQLITE_ROW) [[likely]] {
    take_row(statement, 0, fields, out);
    sqlite3_reset(statement);
    return Status::ok();
  }
  return failed_read(statement, result);
}

Status SqliteClient::failed_read(sqlite3_stmt* statement, int result) {
  Status status = result == SQLITE_DONE ? Status::not_found() : connection_.status(result);
  sqlite3_reset(statement);
  return status;
}

Status SqliteClient::insert(std::string_view key, const Row& row) {
  Status status;
  sqlite3_stmt* statement = insert_.get();
  if (statement == nullptr) {
    statement = once(insert_, insert_sql(field_count_).c_str(), status);
    if (statement == nullptr) return status;
  }
  if (row.field_count() != field_count_) sqlite3_clear_bindings(statement);
  int bound = bind_key(statement, 1, key);
  for (size_t i = 0; i < row.field_count(); ++i)
    bound |= bind_value(statement, row.field_number(i) + 2, row.value(i));
  return write(statement, bound, false);
}

Status SqliteClient::update(std::string_view key, const Row& changed, bool) {
  const size_t count = changed.field_count();
  const bool all = count == field_count_;
  if (!all && count != 1) return update_field_by_field(key, changed);
  const FieldChoice fields{all, changed.field_number(0)};
  if (on_fields(Kind::kUpdate, fields) == nullptr)
    if (Status status = prepare(Kind::kUpdate, fields); !status.is_ok()) return status;
  sqlite3_stmt* const statement = on_fields(Kind::kUpdate, fields);
  int bound = bind_key(statement, static_cast<int>(count) + 1, key);
  for (size_t i = 0; i < count; ++i)
    bound |= bind_value(statement, all ? changed.field_number(i) + 1 : 1, changed.value(i));
  return write(statement, bound, true);
}

// Several fields, but not all: no YCSB workload does this.
Status SqliteClient::update_field_by_field(std::string_view key, const Row& changed) {
  Row one;
  for (size_t i = 0; i < changed.field_count(); ++i) {
    const uint16_t number = changed.field_number(i);
    const std::string_view value = changed.value(i);
    const auto length = static_cast<uint32_t>(value.size());
    one.reset({&number, 1}, {&length, 1});
    std::memcpy(one.mutable_values().data(), value.data(), value.size());
    if (Status status = update(key, one, false); !status.is_ok()) return status;
  }
  return Status::ok();
}

Status SqliteClient::scan(std::string_view start, uint64_t limit, FieldChoice fields,
                          const Visitor& visit) {
  if (on_fields(Kind::kScan, fields) == nullptr)
    if (Status status = prepare(Kind::kScan, fields); !status.is_ok()) return status;
  sqlite3_stmt* const statement = on_fields(Kind::kScan, fields);
  bind_key(statement, 1, start);
  sqlite3_bind_int64(statement, 2, static_cast<sqlite3_int64>(limit));
  const Gate::Inside inside = gate_.together();
  int result;
  while ((result = connection_.step(statement)) == SQLITE_ROW) {
    take_row(statement, 1, fields, scanned_);
    const auto* key = static_cast<const char*>(sqlite3_column_blob(statement, 0));
    visit({key, static_cast<size_t>(sqlite3_column_bytes(statement, 0))}, scanned_);
  }
  Status status = connection_.status(result);
  sqlite3_reset(statement);
  return status;
}

Status SqliteClient::remove(std::string_view key, bool) {
  Status status;
  sqlite3_stmt* statement = once(remove_, "DELETE FROM usertable WHERE YCSB_KEY=?", status);
  if (statement == nullptr) return status;
  return write(statement, bind_key(statement, 1, key), true);
}

Status SqliteClient::write(sqlite3_stmt* statement, int bound, bool must_change) {
  if (bound != SQLITE_OK)
    return {StatusCode::kBadInput, "sqlite: a field that the table has no column for"};
  if (batch_ > 1 && pending_ == 0 && !in_transaction()) {
    Status status;
    sqlite3_stmt* begin = once(begin_, "BEGIN IMMEDIATE", status);
    if (begin != nullptr) status = run(begin);
    if (!status.is_ok()) return status;
  }
  const Gate::Inside inside = gate_.alone();
  Status status = run(statement);
  if (!status.is_ok()) return taken_back(std::move(status));
  if (must_change && sqlite3_changes(connection_.handle()) == 0) status = Status::not_found();
  if (batch_ > 1 && ++pending_ >= batch_)
    if (Status committed = commit(); !committed.is_ok()) return committed;
  return status;
}

Status SqliteClient::run(sqlite3_stmt* statement) {
  Status status = connection_.status(connection_.step(statement));
  sqlite3_reset(statement);
  return status;
}

Status SqliteClient::commit() {
  Status status;
  sqlite3_stmt* commit = once(commit_, "COMMIT", status);
  if (commit != nullptr) status = run(commit);
  if (!status.is_ok()) return taken_back(std::move(status));
  pending_ = 0;
  return status;
}

// Some errors, such as a full disk, undo the whole transaction.
Status SqliteClient::taken_back(Status status) {
  if (pending_ == 0 || in_transaction()) return status;
  Status with_count(status.code(), status.message() + "; the " + std::to_string(pending_) +
                                       " writes since the last commit were taken back");
  pending_ = 0;
  return with_count;
}

}  // namespace opjoule
