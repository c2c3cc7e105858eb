#include "databases/rocksdb_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "loader/board_clock.h"

namespace opjoule {
namespace {

constexpr size_t kLongestLine = 2000;

class RocksdbLog : public rocksdb::Logger {
 public:
  explicit RocksdbLog(int fd) : rocksdb::Logger(rocksdb::InfoLogLevel::INFO_LEVEL), fd_(fd) {}
  ~RocksdbLog() override {
    if (fd_ >= 0) ::close(fd_);
  }

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[kLongestLine];
    const int head = std::snprintf(line, sizeof line, "%lld ", static_cast<long long>(board_ns()));
    const int size = head + std::vsnprintf(line + head, sizeof line - static_cast<size_t>(head) - 1,
                                           format, arguments);
    const size_t end = std::min(static_cast<size_t>(std::max(size, head)), sizeof line - 2);
    line[end] = '\n';
    if (fd_ >= 0 && ::write(fd_, line, end + 1) < 0) return;  // a log is not worth a failure
  }

 protected:
  rocksdb::Status CloseImpl() override { return rocksdb::Status::OK(); }

 private:
  int fd_;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> rocksdb_log(const std::string& path) {
  return std::make_shared<RocksdbLog>(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
}

}  // namespace opjoule
