// One SQLite connection with the loader's settings, which waits while another connection holds the
// database.
//
// Waiting: a step that meets a lock is tried again after 0.1, 0.2, 0.5, 1, 2, 5, 10 and then every
// 20 ms, until sqlite.busy_timeout_ms have passed since the first try; each wait counts as busy,
// reaching the limit as a time-out. Thread safety: none; a connection belongs to one thread.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "loader/database.h"
#include "loader/status.h"

namespace opjoule {

struct SqliteOptions {
  std::string journal_mode;
  std::string synchronous;
  int64_t page_bytes = 0;
  int64_t cache_kib = 0;
  int64_t mmap_bytes = 0;
  int64_t wal_autocheckpoint_pages = 0;
  int64_t batch = 1;
  int64_t busy_timeout_ms = 0;
};

struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

class SqliteConnection {
 public:
  SqliteConnection(const SqliteOptions& options, EventSink* events)
      : options_(options), events_(events) {}
  ~SqliteConnection();
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  // Fields that a table can have beside its key.
  static int most_fields();
  Status open(const std::string& file, const char* vfs);
  Status prepare(const std::string& sql, SqliteStatement* statement);
  // Runs statements without results.
  Status run(const std::string& sql);
  // The first column of the first row.
  Status ask(const std::string& sql, std::string* answer);
  // SQLITE_ROW, SQLITE_DONE or an error code; waits as stated above. The caller resets.
  int step(sqlite3_stmt* statement) {
    int result = sqlite3_step(statement);
    if ((result & 0xff) == SQLITE_BUSY) result = step_again(statement);
    give_up_board_ns_ = 0;
    return result;
  }
  // Turns SQLite's code and its message for the last error into a Status.
  Status status(int result) const {
    const int primary = result & 0xff;
    if (primary == SQLITE_ROW || primary == SQLITE_DONE || primary == SQLITE_OK) [[likely]]
      return Status::ok();
    return failure(result);
  }
  // Moves the write-ahead log into the database, and adds an event.
  int checkpoint(int mode);

  [[nodiscard]] sqlite3* handle() const { return handle_; }
  [[nodiscard]] RetryCounts retries() const { return retries_; }

 private:
  static int on_busy(void* self, int tries);
  static int on_commit_to_wal(void* self, sqlite3* handle, const char* name, int pages);
  bool wait(int tries);
  int step_again(sqlite3_stmt* statement);
  [[gnu::cold]] Status failure(int result) const;
  Status apply_options();

  SqliteOptions options_;
  EventSink* events_;
  sqlite3* handle_ = nullptr;
  RetryCounts retries_;
  int64_t give_up_board_ns_ = 0;  // 0: not waiting
};

}  // namespace opjoule
