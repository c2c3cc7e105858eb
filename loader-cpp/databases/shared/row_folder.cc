#include "databases/shared/row_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "databases/shared/directory.h"
#include "databases/shared/errno_status.h"
#include "databases/shared/options.h"

namespace opjoule {
namespace {

// An open file that is closed at the end of its scope.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) return errno_status("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return Status::ok();
}

// kNotFound where there is no such file.
Status read_row(const std::string& path, Row& out) {
  const OpenFile file(path, O_RDONLY);
  if (file.fd() < 0) return errno == ENOENT ? Status::not_found() : errno_status("open", path);
  struct stat found;
  if (fstat(file.fd(), &found) != 0) return errno_status("look at", path);
  std::string& buffer = out.buffer();
  buffer.resize(static_cast<size_t>(found.st_size));
  size_t have = 0;
  while (have < buffer.size()) {
    const ssize_t got = ::read(file.fd(), buffer.data() + have, buffer.size() - have);
    if (got < 0) return errno_status("read", path);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  buffer.resize(have);
  return out.parse();
}

std::string_view parent(std::string_view path) { return path.substr(0, path.rfind('/')); }

struct Shared {
  FolderLayout layout;
  std::string rows;     // DIR/records/
  std::string writing;  // DIR/writing/
  bool sync = false;
  bool in_place = false;  // updates
  EventSink* events = nullptr;
};

class FolderClient : public Client {
 public:
  FolderClient(const Shared& shared, int number)
      : shared_(shared), temporary_(shared.writing + std::to_string(number)) {}

  Status read(std::string_view key, FieldChoice, Row& out) override {
    if (Status status = locate(key); !status.is_ok()) return status;
    return read_row(path_, out);
  }

  Status insert(std::string_view key, const Row& row) override {
    if (Status status = locate(key); !status.is_ok()) return status;
    Status status = write_new(path_, O_EXCL, row.stored());
    if (status.is_not_found()) {  // its folder is not there yet
      if (status = make_folders(); !status.is_ok()) return status;
      status = write_new(path_, O_EXCL, row.stored());
    }
    if (status.is_ok() && shared_.sync) status = sync_folder(parent(path_));
    return status;
  }

  Status update(std::string_view key, const Row& changed, bool blind) override {
    if (Status status = locate(key); !status.is_ok()) return status;
    if (blind) {
      if (shared_.in_place) return overwrite(changed);
      if (::access(path_.c_str(), F_OK) != 0) return Status::not_found();
      return replace(changed);
    }
    if (Status status = read_row(path_, merged_); !status.is_ok()) return status;
    merged_.merge(changed);
    return shared_.in_place ? overwrite(merged_) : replace(merged_);
  }

  Status scan(std::string_view, uint64_t, FieldChoice, const Visitor&) override {
    return {StatusCode::kUnsupported, std::string(shared_.layout.engine) +
                                          ": a folder has no key order, so it cannot be scanned"};
  }

  Status remove(std::string_view key, bool) override {
    if (Status status = locate(key); !status.is_ok()) return status;
    if (::unlink(path_.c_str()) != 0)
      return errno == ENOENT ? Status::not_found() : errno_status("remove", path_);
    return shared_.sync ? sync_folder(parent(path_)) : Status::ok();
  }

 private:
  Status locate(std::string_view key) {
    path_.assign(shared_.rows);
    return shared_.layout.append_path(key, path_);
  }

  // kNotFound where the folder is missing; a file that could not be written whole is removed again.
  Status write_new(const std::string& path, int exclusive, std::string_view bytes) {
    const OpenFile file(path, O_WRONLY | O_CREAT | (exclusive != 0 ? O_EXCL : O_TRUNC));
    if (file.fd() < 0 && errno == ENOENT) return Status::not_found();
    if (file.fd() < 0 && errno == EEXIST) return {StatusCode::kExists, {}};
    if (file.fd() < 0) return errno_status("create", path);
    Status status = write_all(file.fd(), bytes, path);
    if (status.is_ok() && shared_.sync) status = timed_sync(file.fd(), path);
    if (!status.is_ok()) ::unlink(path.c_str());
    return status;
  }

  Status overwrite(const Row& row) {
    const OpenFile file(path_, O_WRONLY | O_TRUNC);
    if (file.fd() < 0) return errno == ENOENT ? Status::not_found() : errno_status("open", path_);
    Status status = write_all(file.fd(), row.stored(), path_);
    return status.is_ok() && shared_.sync ? timed_sync(file.fd(), path_) : status;
  }

  Status replace(const Row& row) {
    if (Status status = write_new(temporary_, 0, row.stored()); !status.is_ok()) return status;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_status("replace", path_);
    return shared_.sync ? sync_folder(parent(path_)) : Status::ok();
  }

  Status make_folders() {
    for (size_t slash = path_.find('/', shared_.rows.size()); slash != std::string::npos;
         slash = path_.find('/', slash + 1)) {
      const std::string folder = path_.substr(0, slash);
      if (::mkdir(folder.c_str(), 0755) != 0) {
        if (errno == EEXIST) continue;
        return errno_status("create", folder);
      }
      if (!shared_.sync) continue;
      if (Status status = sync_folder(parent(folder)); !status.is_ok()) return status;
    }
    return Status::ok();
  }

  Status sync_folder(std::string_view path) {
    const std::string folder(path);
    const OpenFile opened(folder, O_RDONLY | O_DIRECTORY);
    if (opened.fd() < 0) return errno_status("open", folder);
    return timed_sync(opened.fd(), folder);
  }

  Status timed_sync(int fd, const std::string& path) {
    return timed(shared_.events, EventKind::kSync, "",
                 [&] { return fsync(fd) == 0 ? Status::ok() : errno_status("sync", path); });
  }

  const Shared& shared_;
  const std::string temporary_;
  std::string path_;  // of the operation's row; kept, so that no operation allocates
  Row merged_;
};

class FolderDatabase : public Database {
 public:
  Status open(const FolderLayout& layout, std::string_view version, const OpenRequest& request) {
    const std::vector<PropertyRule> rules = folder_rules(std::string(layout.engine));
    Options options(layout.engine, *request.properties, rules);
    shared_.sync = options.sync();
    shared_.in_place = options.choice(rules.back().key, {"rename", "in-place"}) == "in-place";
    if (!options.status().is_ok()) return options.status();
    if (Status status = directory_.open(request, layout.engine, version); !status.is_ok())
      return status;
    shared_.layout = layout;
    shared_.events = request.events;
    shared_.rows = directory_.file("records/");
    shared_.writing = directory_.file("writing/");
    settings_ = std::move(options.settings());
    settings_[std::string(layout.engine) + ".naming"] = layout.naming;
    if (Status status = make_empty_folders(); !status.is_ok()) return status;
    return request.resume ? drop_torn_files() : Status::ok();
  }

  std::unique_ptr<Client> client(Status&) override {
    return std::make_unique<FolderClient>(shared_, ++clients_);
  }

  // There is no background work; the caller syncs the file system.
  Status settle(double, bool* settled) override {
    *settled = true;
    return Status::ok();
  }

  Status count(uint64_t* rows) override {
    *rows = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(shared_.rows, error), end;
         !error && at != end; at.increment(error))
      if (at->is_regular_file()) ++*rows;
    return error ? errno_status("list", shared_.rows, error.value()) : Status::ok();
  }

  [[nodiscard]] uint64_t size_on_disk() const override { return directory_.bytes(); }
  [[nodiscard]] std::map<std::string, std::string> settings() const override { return settings_; }
  Status close() override { return Status::ok(); }

 private:
  // Drops what an interrupted loader left half written.
  Status make_empty_folders() {
    std::error_code error;
    std::filesystem::remove_all(shared_.writing, error);
    if (!error) std::filesystem::create_directory(shared_.writing, error);
    if (!error) std::filesystem::create_directory(shared_.rows, error);
    return error ? errno_status("create folders in", directory_.path(), error.value())
                 : Status::ok();
  }

  // If the loader dies or the power fails, files may be left without their whole row: a resumed
  // load inserts those rows again.
  Status drop_torn_files() {
    Row row;
    uint64_t dropped = 0;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator at(shared_.rows, error), end;
         !error && at != end; at.increment(error)) {
      if (!at->is_regular_file()) continue;
      const Status status = read_row(at->path(), row);
      if (status.code() != StatusCode::kCorrupt) continue;
      if (::unlink(at->path().c_str()) != 0) return errno_status("remove", at->path().string());
      ++dropped;
    }
    settings_[std::string(shared_.layout.engine) + ".torn_files_dropped"] = std::to_string(dropped);
    return error ? errno_status("list", shared_.rows, error.value()) : Status::ok();
  }

  DatabaseDirectory directory_;
  Shared shared_;
  std::atomic<int> clients_{0};
  std::map<std::string, std::string> settings_;
};

}  // namespace

std::vector<PropertyRule> folder_rules(const std::string& engine) {
  return {durability_rule(),
          {engine + ".updates", "rename",
           "rename: an update writes a new file and renames it over the old one; in-place: it cuts "
           "the old one and writes into it"}};
}

std::unique_ptr<Database> open_row_folder(const FolderLayout& layout, std::string_view version,
                                          const OpenRequest& request, Status& status) {
  auto database = std::make_unique<FolderDatabase>();
  status = database->open(layout, version, request);
  if (!status.is_ok()) return nullptr;
  return database;
}

}  // namespace opjoule
