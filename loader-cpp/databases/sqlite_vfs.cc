#include "databases/sqlite_vfs.h"

#include <cstdint>

namespace opjoule {
namespace {

const char* kind_of(int open_flags) {
  if (open_flags & SQLITE_OPEN_MAIN_DB) return "database";
  if (open_flags & SQLITE_OPEN_MAIN_JOURNAL) return "journal";
  if (open_flags & SQLITE_OPEN_WAL) return "wal";
  return "other";
}

}  // namespace

SqliteVfs::SqliteVfs(EventSink* events)
    : vfs_(*sqlite3_vfs_find(nullptr)), below_(sqlite3_vfs_find(nullptr)), events_(events) {
  name_ = "opjoule-" + std::to_string(reinterpret_cast<uintptr_t>(this));
  vfs_.zName = name_.c_str();
  vfs_.pNext = nullptr;
  vfs_.pAppData =
      this;  // the layer below is always called with its own sqlite3_vfs, and so with its own data
  vfs_.xOpen = &SqliteVfs::open;
  sqlite3_vfs_register(&vfs_, 0);
}

SqliteVfs::~SqliteVfs() { sqlite3_vfs_unregister(&vfs_); }

int SqliteVfs::open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out) {
  auto* self = static_cast<SqliteVfs*>(vfs->pAppData);
  const int result = self->below_->xOpen(self->below_, path, file, flags, out);
  if (result == SQLITE_OK && file->pMethods != nullptr)
    file->pMethods = self->with_timed_sync(file->pMethods, kind_of(flags));
  return result;
}

int SqliteVfs::sync(sqlite3_file* file, int flags) {
  const auto* table = reinterpret_cast<const TimedMethods*>(file->pMethods);
  return timed(table->events, EventKind::kSync, table->kind,
               [&] { return table->below->xSync(file, flags); });
}

const sqlite3_io_methods* SqliteVfs::with_timed_sync(const sqlite3_io_methods* below,
                                                     const char* kind) {
  const std::lock_guard lock(mutex_);
  for (const TimedMethods& table : tables_)
    if (table.below == below && table.kind == kind) return &table.methods;
  tables_.push_back({*below, below, kind, events_});
  tables_.back().methods.xSync = &SqliteVfs::sync;
  return &tables_.back().methods;
}

}  // namespace opjoule
