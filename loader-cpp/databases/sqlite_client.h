// The client of a SQLite database: has its own connection, and prepares each statement once, when
// first used.
//
// Thread safety: none; a client belongs to one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "databases/shared/gate.h"
#include "databases/sqlite_connection.h"
#include "loader/database.h"

namespace opjoule {

// "FIELD0, FIELD1", each with a suffix, as in "FIELD0=?, FIELD1=?".
std::string sqlite_columns(size_t field_count, const std::string& suffix = "");

class SqliteClient : public Client {
 public:
  SqliteClient(const SqliteOptions& options, uint16_t field_count, EventSink* events, Gate& gate)
      : gate_(gate),
        connection_(options, events),
        batch_(options.batch),
        field_count_(field_count) {
    for (auto& statements : on_fields_) statements.resize(field_count + 1);
  }
  ~SqliteClient() override { (void)flush(); }

  Status open(const std::string& file, const char* vfs) { return connection_.open(file, vfs); }

  Status read(std::string_view key, FieldChoice fields, Row& out) override;
  Status insert(std::string_view key, const Row& row) override;
  Status update(std::string_view key, const Row& changed, bool whole) override;
  Status scan(std::string_view start, uint64_t limit, FieldChoice fields,
              const Visitor& visit) override;
  Status remove(std::string_view key, bool) override;
  Status flush() override { return in_transaction() ? commit() : Status::ok(); }
  [[nodiscard]] RetryCounts retries() const override { return connection_.retries(); }

 private:
  enum class Kind { kRead, kScan, kUpdate };
  // The statement for one field, or for all; nullptr before it is prepared.
  [[nodiscard]] sqlite3_stmt* on_fields(Kind kind, FieldChoice fields) const {
    const std::vector<SqliteStatement>& slots = on_fields_[static_cast<int>(kind)];
    if (fields.all) [[likely]]
      return slots.back().get();
    return fields.number < field_count_ ? slots[fields.number].get() : nullptr;
  }
  [[gnu::cold, gnu::noinline]] Status prepare(Kind kind, FieldChoice fields);
  sqlite3_stmt* once(SqliteStatement& slot, const char* sql, Status& status);
  Status update_field_by_field(std::string_view key, const Row& changed);
  [[gnu::always_inline]] void take_row(sqlite3_stmt* row, int first_column, FieldChoice fields,
                                       Row& out);
  [[gnu::always_inline]] bool take_even_row(sqlite3_stmt* row, int first_column, Row& out);
  void take_any_row(sqlite3_stmt* row, int first_column, FieldChoice fields, Row& out);
  [[gnu::cold, gnu::noinline]] Status failed_read(sqlite3_stmt* statement, int result);
  // Runs a bound statement that writes, in the open transaction if there is one.
  Status write(sqlite3_stmt* statement, int bound, bool must_change);
  Status run(sqlite3_stmt* statement);
  Status commit();
  Status taken_back(Status status);
  // Also true where the first write after its begin failed.
  [[nodiscard]] bool in_transaction() const {
    sqlite3* const handle = connection_.handle();
    return batch_ > 1 && handle != nullptr && sqlite3_get_autocommit(handle) == 0;
  }

  Gate& gate_;
  SqliteConnection connection_;
  const int64_t batch_;
  const uint16_t field_count_;
  int64_t pending_ = 0;  // writes in the open transaction
  // By kind: a statement for each field, and last the one for all.
  std::vector<SqliteStatement> on_fields_[3];
  SqliteStatement insert_;
  SqliteStatement remove_;
  SqliteStatement begin_;
  SqliteStatement commit_;
  std::vector<uint16_t> numbers_;
  std::vector<uint32_t> lengths_;
  std::vector<const void*> columns_;
  Row scanned_;
};

}  // namespace opjoule
