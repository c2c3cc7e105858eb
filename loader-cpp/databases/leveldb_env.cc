#include "databases/leveldb_env.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "loader/board_clock.h"

namespace opjoule {
namespace {

// What LevelDB's log lines tell of the work in progress (db/db_impl.cc): they are written by the
// thread that does the work, in order.
struct ThreadActivity {
  int64_t flush_start_board_ns = 0;
  int64_t compaction_start_board_ns = 0;
  int64_t wait_start_board_ns = 0;
  char compaction[96] = "";
};
thread_local ThreadActivity activity;

class ObservedFile : public leveldb::WritableFile {
 public:
  ObservedFile(leveldb::WritableFile* file, const std::string& name, EventSink* events)
      : file_(file), events_(events), name_(name.substr(name.rfind('/') + 1)) {}

  leveldb::Status Append(const leveldb::Slice& data) override { return file_->Append(data); }
  leveldb::Status Close() override { return file_->Close(); }
  leveldb::Status Flush() override { return file_->Flush(); }
  leveldb::Status Sync() override {
    return timed(events_, EventKind::kSync, name_, [&] { return file_->Sync(); });
  }

 private:
  std::unique_ptr<leveldb::WritableFile> file_;
  EventSink* events_;
  std::string name_;
};

}  // namespace

// Writes LevelDB's LOG file as LevelDB would, and reads every line.
class LeveldbLog : public leveldb::Logger {
 public:
  LeveldbLog(leveldb::Logger* file, LeveldbEnv* env) : file_(file), env_(env) {}

  void Logv(const char* format, std::va_list arguments) override {
    std::va_list copy;
    va_copy(copy, arguments);
    read_along(format, copy);
    va_end(copy);
    file_->Logv(format, arguments);
  }

 private:
  void read_along(const char* format, std::va_list arguments) {
    auto is = [format](const char* start) {
      return std::strncmp(format, start, std::strlen(start)) == 0;
    };
    if (is("Level-0 table #%llu: started")) {
      activity.flush_start_board_ns = env_->begin(EventKind::kFlush);
    } else if (is("Level-0 table #%llu: %lld bytes")) {
      char line[96];
      std::vsnprintf(line, sizeof line, format, arguments);
      env_->add(EventKind::kFlush, activity.flush_start_board_ns, line);
    } else if (is("Compacting ")) {
      activity.compaction_start_board_ns = env_->begin(EventKind::kCompaction);
      std::vsnprintf(activity.compaction, sizeof activity.compaction, format, arguments);
    } else if (is("Compacted ")) {  // now with the bytes written; the event ends with the
                                    // background call
      std::vsnprintf(activity.compaction, sizeof activity.compaction, format, arguments);
    } else if (is("%s%s: dropping %d bytes")) {  // DBImpl::RecoverLogFile, its reporter
      char line[256];
      std::vsnprintf(line, sizeof line, format, arguments);
      env_->keep_lost(line);
    } else if (is("Current memtable full; waiting") || is("Too many L0 files; waiting")) {
      env_->begin_wait();
    }
  }

  std::unique_ptr<leveldb::Logger> file_;
  LeveldbEnv* env_;
};

struct LeveldbEnv::Work {
  LeveldbEnv* env;
  void (*function)(void*);
  void* argument;
};

void LeveldbEnv::Schedule(void (*function)(void*), void* argument) {
  {
    const std::lock_guard lock(mutex_);
    ++scheduled_;
  }
  target()->Schedule(&LeveldbEnv::run, new Work{this, function, argument});
}

void LeveldbEnv::run(void* work_pointer) {
  const std::unique_ptr<Work> work(static_cast<Work*>(work_pointer));
  LeveldbEnv* env = work->env;
  work->function(work->argument);
  if (activity.compaction_start_board_ns != 0)
    env->add(EventKind::kCompaction, activity.compaction_start_board_ns, activity.compaction);
  activity.compaction_start_board_ns = 0;
  const std::lock_guard lock(env->mutex_);
  --env->scheduled_;
  env->idle_.notify_all();
}

bool LeveldbEnv::wait_idle(double limit_s) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::duration<double>(limit_s),
                        [this] { return scheduled_ == 0; });
}

int64_t LeveldbEnv::begin(EventKind kind) {
  const int64_t start_board_ns = board_ns();
  if (events_ != nullptr) events_->begin(kind, start_board_ns);
  return start_board_ns;
}

void LeveldbEnv::add(EventKind kind, int64_t start_board_ns, std::string_view detail) {
  if (events_ != nullptr) events_->add(kind, start_board_ns, board_ns(), detail);
}

leveldb::Status LeveldbEnv::observe(const std::string& name, leveldb::Status status,
                                    leveldb::WritableFile** file) {
  end_wait();
  if (status.ok() && events_ != nullptr) *file = new ObservedFile(*file, name, events_);
  return status;
}

leveldb::Status LeveldbEnv::NewWritableFile(const std::string& name, leveldb::WritableFile** file) {
  return observe(name, target()->NewWritableFile(name, file), file);
}

leveldb::Status LeveldbEnv::NewAppendableFile(const std::string& name,
                                              leveldb::WritableFile** file) {
  return observe(name, target()->NewAppendableFile(name, file), file);
}

leveldb::Status LeveldbEnv::NewLogger(const std::string& name, leveldb::Logger** logger) {
  leveldb::Status status = target()->NewLogger(name, logger);
  if (status.ok()) *logger = new LeveldbLog(*logger, this);
  return status;
}

// LevelDB sleeps only to slow down a writer while level 0 fills (DBImpl::MakeRoomForWrite).
void LeveldbEnv::SleepForMicroseconds(int micros) {
  const int64_t start = board_ns();
  target()->SleepForMicroseconds(micros);
  ++stalls_;
  add(EventKind::kStall, start, "slowed down, level 0 fills");
}

void LeveldbEnv::keep_lost(const char* words) {
  const std::lock_guard lock(mutex_);
  if (lost_.empty()) lost_ = words;
}

// A writer waits here for the last memtable to be flushed; it goes on by opening a new log file.
void LeveldbEnv::begin_wait() {
  ++stalls_;
  if (activity.wait_start_board_ns == 0) activity.wait_start_board_ns = board_ns();
}

void LeveldbEnv::end_wait() {
  if (activity.wait_start_board_ns == 0) return;
  add(EventKind::kStall, activity.wait_start_board_ns, "waited for a flush");
  activity.wait_start_board_ns = 0;
}

}  // namespace opjoule
