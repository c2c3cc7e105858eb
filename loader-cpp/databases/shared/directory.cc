#include "databases/shared/directory.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "databases/shared/errno_status.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

namespace fs = std::filesystem;

// What a new file system has at its root.
constexpr std::string_view kLostAndFound = "lost+found";

bool is_owned(const std::string& name, std::string_view engine) {
  if (name == kMarkerName || name == std::string(kMarkerName) + ".tmp") return true;
  for (const std::string& pattern : owned_files(engine))
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

// The entries of `directory`, lost+found left out.
Status list(const std::string& directory, std::vector<std::string>* names) {
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    if (at->path().filename() != kLostAndFound) names->push_back(at->path().filename());
  if (error) return errno_status("list", directory, error.value());
  return Status::ok();
}

// The file that every database of `engine` has; empty for an unknown engine. If it is missing, the
// engine would begin a new database in place of the old one.
std::string_view main_file(std::string_view engine) {
  static const std::map<std::string_view, std::string_view> files = {
      {"leveldb", "CURRENT"},      {"rocksdb", "CURRENT"},         {"sqlite", "usertable.sqlite"},
      {"lmdb", "data.mdb"},        {"berkeleydb", "usertable.db"}, {"flatfolder", "records"},
      {"nestedfolder", "records"},
  };
  const auto found = files.find(engine);
  return found == files.end() ? std::string_view() : found->second;
}

uint64_t allocated_bytes(const fs::path& path) {
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) return 0;
  return static_cast<uint64_t>(found.st_blocks) * 512;
}

}  // namespace

const std::vector<std::string>& owned_files(std::string_view engine) {
  static const std::map<std::string, std::vector<std::string>, std::less<>> patterns = {
      {"leveldb",
       {"CURRENT", "LOCK", "LOG", "LOG.old", "MANIFEST-[0-9]*", "[0-9]*.log", "[0-9]*.ldb",
        "[0-9]*.sst", "[0-9]*.dbtmp", "lost"}},
      {"rocksdb",
       {"CURRENT", "LOCK", "IDENTITY", "LOG", "LOG.old.[0-9]*", "MANIFEST-[0-9]*", "OPTIONS-[0-9]*",
        "[0-9]*.log", "[0-9]*.sst", "[0-9]*.blob", "[0-9]*.dbtmp", "archive"}},
      {"sqlite",
       {"usertable.sqlite", "usertable.sqlite-journal", "usertable.sqlite-wal",
        "usertable.sqlite-shm"}},
      {"lmdb", {"data.mdb", "lock.mdb"}},
      {"berkeleydb", {"usertable.db", "usertable.unclean", "__db.*", "log.[0-9]*"}},
      {"flatfolder", {"records", "writing"}},
      {"nestedfolder", {"records", "writing"}},
  };
  static const std::vector<std::string> none;
  const auto found = patterns.find(engine);
  return found == patterns.end() ? none : found->second;
}

DatabaseDirectory::~DatabaseDirectory() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Status DatabaseDirectory::open(const OpenRequest& request, std::string_view engine,
                               std::string_view version) {
  path_ = request.path;
  std::error_code error;
  if (request.create) fs::create_directories(path_, error);
  if (error) return system_error("cannot create directory " + path_, error.value());
  if (Status status = lock(); !status.is_ok()) return status;

  const Marker asked{std::string(engine), std::string(version), kRowLayout, request.field_count};
  Marker found;
  const Status marked = read_marker(file(kMarkerName), &found);
  if (!marked.is_ok() && !marked.is_not_found()) return marked;
  if (marked.is_ok() && (!request.create || request.resume)) {
    const Status status = check_marker(path_, found, asked);
    return status.is_ok() && !request.resume ? check_main_file(engine) : status;
  }
  if (!request.create)
    return {StatusCode::kBadInput,
            "no database of this loader in " + path_ + " (no opjoule.json): load one first"};
  return make_new(asked, found.engine);
}

Status DatabaseDirectory::lock() {
  lock_fd_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_fd_ < 0 && errno == ENOENT)
    return {StatusCode::kBadInput, "no database directory " + path_ + ": load one first"};
  if (lock_fd_ < 0) return system_error("cannot open directory " + path_);
  if (flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return Status::ok();
  if (errno == EWOULDBLOCK)
    return {StatusCode::kBusy, "another loader has the database in " + path_ + " open"};
  return errno_status("lock directory", path_);
}

Status DatabaseDirectory::check_main_file(std::string_view engine) const {
  const std::string_view name = main_file(engine);
  struct stat entry;
  const bool is_there = stat(file(name).c_str(), &entry) == 0;
  if (name.empty() || (is_there && (S_ISDIR(entry.st_mode) || entry.st_size > 0)))
    return Status::ok();
  return {StatusCode::kCorrupt,
          "the database in " + path_ + " is damaged: " + std::string(name) +
              (is_there ? " is empty" : " is missing") +
              "; load it anew, or finish an interrupted load with load --resume"};
}

// Looks at every entry before it removes the first, so that after a refusal nothing has changed.
Status DatabaseDirectory::make_new(const Marker& asked, const std::string& old_engine) {
  std::vector<std::string> names;
  if (Status status = list(path_, &names); !status.is_ok()) return status;
  for (const std::string& name : names)
    if (!is_owned(name, old_engine))
      return {StatusCode::kBadInput, path_ + " holds '" + name +
                                         "', which no load of this loader wrote: nothing was "
                                         "removed; choose an empty or new directory"};
  std::error_code error;
  for (const std::string& name : names)
    if (name != kMarkerName) fs::remove_all(file(name), error);
  if (error) return errno_status("remove old database in", path_, error.value());
  is_new_ = true;
  return write_marker(file(kMarkerName), asked);
}

std::string DatabaseDirectory::file(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

uint64_t DatabaseDirectory::bytes() const {
  uint64_t total = 0;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(path_, options, error), end; !error && at != end;
       at.increment(error))
    if (at->path().filename() != kMarkerName && at->path().filename() != kLostAndFound)
      total += allocated_bytes(at->path());
  return total;
}

}  // namespace opjoule
