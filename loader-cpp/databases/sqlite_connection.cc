#include "databases/sqlite_connection.h"

#include <time.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "loader/board_clock.h"

namespace opjoule {
namespace {

constexpr int64_t kWaitsUs[] = {100, 200, 500, 1000, 2000, 5000, 10000, 20000};

// To be done once, before SQLite starts: its memory statistics take a lock that all connections
// share.
void configure_library() {
  static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)once;
}

}  // namespace

SqliteConnection::~SqliteConnection() { sqlite3_close(handle_); }

// A statement that writes a row has a variable for each column.
int SqliteConnection::most_fields() {
  configure_library();
  sqlite3* handle = nullptr;
  int columns = std::numeric_limits<int>::max();
  if (sqlite3_open(":memory:", &handle) == SQLITE_OK)
    for (const int limit : {SQLITE_LIMIT_COLUMN, SQLITE_LIMIT_VARIABLE_NUMBER})
      columns = std::min(columns, sqlite3_limit(handle, limit, -1));
  sqlite3_close(handle);
  return columns - 1;
}

Status SqliteConnection::open(const std::string& file, const char* vfs) {
  configure_library();
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (const int result = sqlite3_open_v2(file.c_str(), &handle_, flags, vfs); result != SQLITE_OK)
    return status(result);
  sqlite3_busy_handler(handle_, &SqliteConnection::on_busy, this);
  return apply_options();
}

Status SqliteConnection::apply_options() {
  const std::string pragmas = "PRAGMA page_size=" + std::to_string(options_.page_bytes) +
                              "; PRAGMA journal_mode=" + options_.journal_mode +
                              "; PRAGMA synchronous=" + options_.synchronous +
                              "; PRAGMA cache_size=-" + std::to_string(options_.cache_kib) +
                              "; PRAGMA mmap_size=" + std::to_string(options_.mmap_bytes);
  if (Status status = run(pragmas); !status.is_ok()) return status;
  sqlite3_wal_hook(handle_, &SqliteConnection::on_commit_to_wal, this);  // replaces SQLite's own
  return Status::ok();
}

Status SqliteConnection::prepare(const std::string& sql, SqliteStatement* statement) {
  sqlite3_stmt* raw = nullptr;
  const int result = sqlite3_prepare_v3(handle_, sql.c_str(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  statement->reset(raw);
  give_up_board_ns_ = 0;
  return status(result);
}

Status SqliteConnection::run(const std::string& sql) {
  const int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  give_up_board_ns_ = 0;
  return status(result);
}

Status SqliteConnection::ask(const std::string& sql, std::string* answer) {
  SqliteStatement statement;
  if (Status status = prepare(sql, &statement); !status.is_ok()) return status;
  const int result = step(statement.get());
  if (result != SQLITE_ROW) return status(result);
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
  *answer = text == nullptr ? "" : text;
  return Status::ok();
}

Status SqliteConnection::failure(int result) const {
  StatusCode code = StatusCode::kIo;
  switch (result & 0xff) {
    case SQLITE_BUSY:
      code = StatusCode::kBusy;
      break;
    case SQLITE_CONSTRAINT:
      code = StatusCode::kExists;
      break;
    case SQLITE_FULL:
      code = StatusCode::kNoSpace;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = StatusCode::kCorrupt;
      break;
    case SQLITE_ERROR:
      code = StatusCode::kMismatch;
      break;  // a statement that does not fit the table
    default:
      break;
  }
  return {code, std::string("sqlite: ") + (handle_ ? sqlite3_errmsg(handle_) : "out of memory")};
}

int SqliteConnection::checkpoint(int mode) {
  const int64_t start = board_ns();
  if (events_ != nullptr) events_->begin(EventKind::kCheckpoint, start);
  int moved_pages = 0;
  const int result = sqlite3_wal_checkpoint_v2(handle_, "main", mode, nullptr, &moved_pages);
  if (events_ != nullptr)
    events_->add(EventKind::kCheckpoint, start, board_ns(),
                 "pages=" + std::to_string(std::max(moved_pages, 0)));
  return result;
}

// Like SQLite's own hook: if a checkpoint cannot finish, that is no failure; the next commit tries
// again.
int SqliteConnection::on_commit_to_wal(void* self, sqlite3*, const char*, int pages) {
  auto* connection = static_cast<SqliteConnection*>(self);
  const int64_t limit = connection->options_.wal_autocheckpoint_pages;
  if (limit > 0 && pages >= limit) connection->checkpoint(SQLITE_CHECKPOINT_PASSIVE);
  return SQLITE_OK;
}

int SqliteConnection::on_busy(void* self, int tries) {
  return static_cast<SqliteConnection*>(self)->wait(tries) ? 1 : 0;
}

bool SqliteConnection::wait(int tries) {
  const int64_t now = board_ns();
  if (give_up_board_ns_ == 0) give_up_board_ns_ = now + options_.busy_timeout_ms * 1'000'000;
  if (now >= give_up_board_ns_) {
    ++retries_.timeout;
    return false;
  }
  ++retries_.busy;
  const int64_t wait_us = kWaitsUs[std::min<size_t>(tries, std::size(kWaitsUs) - 1)];
  const timespec pause{0, wait_us * 1000};
  nanosleep(&pause, nullptr);
  return true;
}

// SQLite does not call the busy handler where waiting would never end (a reader wants to write
// while a writer waits): the statement is then reset, which releases its locks, and tried again
// within the same limit.
int SqliteConnection::step_again(sqlite3_stmt* statement) {
  int result = SQLITE_BUSY;
  for (int tries = 0; (result & 0xff) == SQLITE_BUSY; ++tries) {
    const bool handler_gave_up = give_up_board_ns_ != 0 && board_ns() >= give_up_board_ns_;
    if (handler_gave_up) break;
    sqlite3_reset(statement);
    if (!wait(tries)) break;
    result = sqlite3_step(statement);
  }
  return result;
}

}  // namespace opjoule
