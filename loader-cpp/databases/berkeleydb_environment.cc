#include "databases/berkeleydb_environment.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "databases/shared/errno_status.h"

namespace opjoule {
namespace {

// Berkeley DB has one fsync function for the whole process: the database opened last gets the
// events.
std::atomic<EventSink*> sync_events{nullptr};

int timed_fsync(int fd) {
  return timed(sync_events, EventKind::kSync, "", [fd] { return fdatasync(fd); });
}

// The messages that Berkeley DB gives before it returns a code, which is often just EIO: the first
// one names the cause.
thread_local std::string first_words;

void remember(const DB_ENV*, const char*, const char* words) {
  if (first_words.empty()) first_words = words;
}

}  // namespace

Status berkeley_status(int result) {
  if (result == 0) return Status::ok();
  if (result == DB_NOTFOUND) return Status::not_found();
  const std::string words = first_words.empty() ? db_strerror(result) : first_words;
  first_words.clear();
  switch (result) {
    case DB_KEYEXIST:
      return {StatusCode::kExists, {}};
    case DB_LOCK_DEADLOCK:
    case DB_LOCK_NOTGRANTED:
      return {StatusCode::kBusy, "berkeleydb: " + words};
    case DB_RUNRECOVERY:
    case DB_PAGE_NOTFOUND:
    case DB_VERIFY_BAD:
      return {StatusCode::kCorrupt, "berkeleydb: " + words};
    case ENOSPC:
      return {StatusCode::kNoSpace, "berkeleydb: " + words};
    default:
      return io_status("berkeleydb", words);
  }
}

Status BerkeleyEnvironment::open(const std::string& directory, const BerkeleyOptions& options,
                                 EventSink* events) {
  directory_ = directory;
  options_ = options;
  events_ = events;
  gate_.use(options.clients > 1 && options.mode != BerkeleyMode::kTransactional);
  noted_write_ = options.mode == BerkeleyMode::kTransactional;
  db_env_set_func_fsync(&timed_fsync);
  sync_events = events;
  if (const int result = db_env_create(&env_, 0); result != 0) return berkeley_status(result);
  env_->set_errcall(env_, &remember);
  env_->set_cachesize(env_, static_cast<uint32_t>(options.cache_bytes >> 30),
                      static_cast<uint32_t>(options.cache_bytes & ((1 << 30) - 1)), 1);
  uint32_t flags = DB_CREATE | DB_PRIVATE | DB_INIT_MPOOL;
  if (options.mode == BerkeleyMode::kConcurrent) flags |= DB_INIT_CDB;
  if (options.mode == BerkeleyMode::kTransactional) {
    flags |= DB_INIT_TXN | DB_INIT_LOG | DB_INIT_LOCK | DB_RECOVER;
    env_->set_lk_detect(env_, DB_LOCK_DEFAULT);
    env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1);
    if (!options.sync) env_->set_flags(env_, DB_TXN_WRITE_NOSYNC, 1);
  }
  if (options.mode != BerkeleyMode::kStore) flags |= DB_THREAD;
  if (const int result = env_->open(env_, directory.c_str(), flags, 0644); result != 0)
    return berkeley_status(result);
  return open_database();
}

Status BerkeleyEnvironment::open_database() {
  if (const int result = db_create(&db_, env_, 0); result != 0) return berkeley_status(result);
  db_->set_pagesize(db_, static_cast<uint32_t>(options_.page_bytes));
  uint32_t flags = options_.read_only ? DB_RDONLY : DB_CREATE;
  if (options_.mode != BerkeleyMode::kStore) flags |= DB_THREAD;
  if (options_.mode == BerkeleyMode::kTransactional) flags |= DB_AUTO_COMMIT;
  const int result = db_->open(db_, nullptr, "usertable.db", nullptr, DB_BTREE, flags, 0644);
  Status status = berkeley_status(result);
  // The options have been checked, so what Berkeley DB calls invalid is the file.
  return result == EINVAL ? Status(StatusCode::kCorrupt, status.message()) : status;
}

Status BerkeleyEnvironment::close() {
  Status status;
  if (db_ != nullptr) status = berkeley_status(db_->close(db_, 0));
  if (env_ != nullptr && options_.mode == BerkeleyMode::kTransactional && status.is_ok())
    status = berkeley_status(env_->txn_checkpoint(env_, 0, 0, DB_FORCE));
  if (env_ != nullptr)
    if (Status closed = berkeley_status(env_->close(env_, 0)); status.is_ok()) status = closed;
  if (events_ != nullptr && sync_events == events_) sync_events = nullptr;
  if (db_ != nullptr && status.is_ok()) ::unlink((directory_ + "/" + kUncleanName).c_str());
  db_ = nullptr;
  env_ = nullptr;
  return status;
}

Status BerkeleyEnvironment::note_write() {
  const std::string path = directory_ + "/" + kUncleanName;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return errno_status("create", path);
  ::close(fd);
  noted_write_ = true;
  return Status::ok();
}

Status BerkeleyEnvironment::check_room(uint64_t* since_check) {
  struct statvfs room;
  if (statvfs(directory_.c_str(), &room) != 0) return errno_status("look at", directory_);
  const uint64_t free_bytes = static_cast<uint64_t>(room.f_bavail) * room.f_frsize;
  const uint64_t kept = static_cast<uint64_t>(options_.cache_bytes) * 5 / 4 + *since_check +
                        static_cast<uint64_t>(options_.clients) * 2 * kCheckEveryBytes +
                        static_cast<uint64_t>(options_.checkpoint_bytes) * 2;
  if (free_bytes < kept)  // since_check stays, so that the next write is checked too
    return {StatusCode::kNoSpace, "berkeleydb: " + std::to_string(free_bytes) +
                                      " bytes are left for " + directory_ + ", of which " +
                                      std::to_string(kept) + " are kept to write the cache back"};
  *since_check = 0;
  return Status::ok();
}

Status BerkeleyEnvironment::wrote(uint64_t bytes) {
  if (options_.mode != BerkeleyMode::kTransactional) return Status::ok();
  const auto limit = static_cast<uint64_t>(options_.checkpoint_bytes);
  const uint64_t before = logged_bytes_.fetch_add(bytes);
  if (before + bytes < limit || before >= limit)
    return Status::ok();  // another client is already making one
  logged_bytes_ = 0;
  return checkpoint();
}

Status BerkeleyEnvironment::checkpoint() {
  return timed(events_, EventKind::kCheckpoint, "",
               [&] { return berkeley_status(env_->txn_checkpoint(env_, 0, 0, DB_FORCE)); });
}

Status BerkeleyEnvironment::write_back() {
  if (options_.mode == BerkeleyMode::kTransactional) return checkpoint();
  return timed(events_, EventKind::kFlush, "cache written back",
               [&] { return berkeley_status(db_->sync(db_, 0)); });
}

}  // namespace opjoule
