// A SQLite file system layer that times xSync and leaves everything else to the system's own: each
// opened file gets the method table of the layer below, with only xSync replaced, so that reads and
// writes cost nothing extra.
//
// Thread safety: as sqlite3_vfs, any thread.
#pragma once

#include <sqlite3.h>

#include <deque>
#include <mutex>
#include <string>

#include "loader/events.h"

namespace opjoule {

class SqliteVfs {
 public:
  // Registers the layer under a name of its own, until it is destroyed. `events` must outlive it.
  explicit SqliteVfs(EventSink* events);
  ~SqliteVfs();
  SqliteVfs(const SqliteVfs&) = delete;
  SqliteVfs& operator=(const SqliteVfs&) = delete;

  [[nodiscard]] const char* name() const { return name_.c_str(); }

 private:
  // The method table of one kind of file; `methods` comes first, so that a file's pMethods points
  // at this.
  struct TimedMethods {
    sqlite3_io_methods methods;
    const sqlite3_io_methods* below;
    const char* kind;
    EventSink* events;
  };

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out);
  static int sync(sqlite3_file* file, int flags);
  const sqlite3_io_methods* with_timed_sync(const sqlite3_io_methods* below, const char* kind);

  sqlite3_vfs vfs_;
  sqlite3_vfs* below_;
  EventSink* events_;
  std::string name_;
  std::mutex mutex_;
  std::deque<TimedMethods> tables_;  // a deque: files point into it
};

}  // namespace opjoule
