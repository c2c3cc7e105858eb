// Berkeley DB's environment and the one database in it, as the loader uses them.
//
// The environment is private to this process. Its mode:
//   store          neither locks nor a log, as in a program that just opens a database;
//                  clients take turns
//   concurrent     many readers or one writer at a time (Concurrent Data Store), no log
//   transactional  locks and a log, each write a transaction of its own
//
// Thread safety: the handles are shared by the clients, inside reading() and writing().
#pragma once

#include <db.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "databases/shared/gate.h"
#include "loader/events.h"
#include "loader/status.h"

namespace opjoule {

enum class BerkeleyMode { kStore, kConcurrent, kTransactional };

struct BerkeleyOptions {
  BerkeleyMode mode = BerkeleyMode::kStore;
  bool sync = false;
  int64_t cache_bytes = 0;
  int64_t page_bytes = 0;
  int64_t checkpoint_bytes = 0;
  int clients = 1;  // that share the environment
  bool read_only = false;
};

// Turns a Berkeley DB code, and its first message on this thread since the last call, into a
// Status.
Status berkeley_status(int result);

// Exists from the first write to a database without a log until it is closed: after a crash its
// pages may contradict each other.
inline constexpr const char* kUncleanName = "usertable.unclean";

class BerkeleyEnvironment {
 public:
  BerkeleyEnvironment() = default;
  ~BerkeleyEnvironment() { (void)close(); }
  BerkeleyEnvironment(const BerkeleyEnvironment&) = delete;
  BerkeleyEnvironment& operator=(const BerkeleyEnvironment&) = delete;

  Status open(const std::string& directory, const BerkeleyOptions& options, EventSink* events);
  Status close();

  // Held by a client while it reads or writes. Mode store takes one client at a time; in mode
  // concurrent, waiting for Berkeley DB's own locks would cost more than most operations.
  [[nodiscard]] Gate::Inside reading() {
    return options_.mode == BerkeleyMode::kStore ? gate_.alone() : gate_.together();
  }
  [[nodiscard]] Gate::Inside writing() { return gate_.alone(); }
  [[nodiscard]] DB* db() const { return db_; }
  [[nodiscard]] DB_ENV* env() const { return env_; }

  // Called before a write of `bytes`. kNoSpace where the file system has only enough room for what
  // the cache may still have to write: a page that cannot be written could destroy the tree without
  // a log, and would end the environment with one.
  Status keep_room(uint64_t bytes, uint64_t* since_check) {
    if (!noted_write_)
      if (Status status = note_write(); !status.is_ok()) return status;
    *since_check += bytes;
    return *since_check < kCheckEveryBytes ? Status::ok() : check_room(since_check);
  }
  // Called after a logged write of `bytes`: a checkpoint every berkeleydb.checkpoint_bytes, so that
  // the log stays small.
  Status wrote(uint64_t bytes);
  // Writes the cache back and syncs it.
  Status write_back();

 private:
  static constexpr uint64_t kCheckEveryBytes = 256 << 10;
  Status open_database();
  Status note_write();
  Status check_room(uint64_t* since_check);
  Status checkpoint();

  Gate gate_;
  DB_ENV* env_ = nullptr;
  DB* db_ = nullptr;
  std::string directory_;
  BerkeleyOptions options_;
  EventSink* events_ = nullptr;
  std::atomic<uint64_t> logged_bytes_{0};
  // True where a crash from here on is noted (or harmless, with a log).
  std::atomic<bool> noted_write_{false};
};

}  // namespace opjoule
