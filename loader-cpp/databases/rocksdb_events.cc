#include "databases/rocksdb_events.h"

#include <rocksdb/file_system.h>

#include <string>
#include <utility>

#include "loader/board_clock.h"

namespace opjoule {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr const char* kDirectory = "directory";

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class TimedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  TimedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, EventSink* events)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), events_(events) {}
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return timed(events_, EventKind::kSync, name_,
                 [&] { return FSWritableFileWrapper::Sync(options, debug); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return timed(events_, EventKind::kSync, name_,
                 [&] { return FSWritableFileWrapper::Fsync(options, debug); });
  }

 private:
  std::string name_;
  EventSink* events_;
};

class TimedDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  TimedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, EventSink* events)
      : FSDirectoryWrapper(std::move(directory)), events_(events) {}
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return timed(events_, EventKind::kSync, kDirectory,
                 [&] { return FSDirectoryWrapper::Fsync(options, debug); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& how) override {
    return timed(events_, EventKind::kSync, kDirectory,
                 [&] { return FSDirectoryWrapper::FsyncWithDirOptions(options, debug, how); });
  }

 private:
  EventSink* events_;
};

class TimedFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit TimedFileSystem(EventSink* events)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), events_(events) {}
  [[nodiscard]] const char* Name() const override { return "TimedFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           IODebugContext* debug) override {
    IOStatus status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (status.ok())
      *file = std::make_unique<TimedFile>(std::move(*file), base_name(name), events_);
    return status;
  }

  IOStatus NewDirectory(const std::string& name, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                        IODebugContext* debug) override {
    IOStatus status = FileSystemWrapper::NewDirectory(name, options, directory, debug);
    if (status.ok()) *directory = std::make_unique<TimedDirectory>(std::move(*directory), events_);
    return status;
  }

 private:
  EventSink* events_;
};

}  // namespace

std::unique_ptr<rocksdb::Env> rocksdb_timed_env(EventSink* events) {
  return rocksdb::NewCompositeEnv(std::make_shared<TimedFileSystem>(events));
}

void RocksdbListener::begin(EventKind kind, int job) {
  const int64_t start = board_ns();
  if (events_ != nullptr) events_->begin(kind, start);
  const std::lock_guard lock(mutex_);
  job_start_board_ns_[job] = start;
}

int64_t RocksdbListener::take_start(int job) {
  const std::lock_guard lock(mutex_);
  const auto found = job_start_board_ns_.find(job);
  if (found == job_start_board_ns_.end()) return board_ns();
  const int64_t start = found->second;
  job_start_board_ns_.erase(found);
  return start;
}

void RocksdbListener::OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo& job) {
  begin(EventKind::kFlush, job.job_id);
}

void RocksdbListener::OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& job) {
  const int64_t start = take_start(job.job_id);
  if (events_ != nullptr)
    events_->add(EventKind::kFlush, start, board_ns(),
                 "file=" + std::to_string(job.file_number) +
                     " bytes=" + std::to_string(job.table_properties.data_size));
}

void RocksdbListener::OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) {
  begin(EventKind::kCompaction, job.job_id);
}

void RocksdbListener::OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) {
  const int64_t start = take_start(job.job_id);
  if (events_ != nullptr)
    events_->add(EventKind::kCompaction, start, board_ns(),
                 "level=" + std::to_string(job.base_input_level) + "->" +
                     std::to_string(job.output_level) +
                     " read=" + std::to_string(job.stats.total_input_bytes) +
                     " written=" + std::to_string(job.stats.total_output_bytes));
}

void RocksdbListener::OnStallConditionsChanged(const rocksdb::WriteStallInfo& stall) {
  const int64_t now = board_ns();
  const bool held_up = stall.condition.cur != rocksdb::WriteStallCondition::kNormal;
  if (held_up) ++stalls_;
  const std::lock_guard lock(mutex_);
  if (held_up && stall_start_board_ns_ == 0) stall_start_board_ns_ = now;
  if (held_up || stall_start_board_ns_ == 0) return;
  if (events_ != nullptr)
    events_->add(EventKind::kStall, stall_start_board_ns_, now, "writes slowed down or stopped");
  stall_start_board_ns_ = 0;
}

}  // namespace opjoule
