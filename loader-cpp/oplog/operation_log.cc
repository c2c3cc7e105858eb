#include "oplog/operation_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "board/clock.h"
#include "board/output_file.h"
#include "board/write_all.h"

namespace opjoule {
namespace {

constexpr char kMagic[9] = "OPJLOG1\n";
constexpr uint32_t kVersion = 2;
constexpr uint32_t kBlockMagic = 0x4B4C4250;
constexpr size_t kFileHeaderBytes = 32;
constexpr size_t kHeaderCrcAt = 28;  // in the file's header and in a block's

// Appends an integer, little endian as every board we build for.
template <typename Int>
char* put(char* at, Int value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

uint32_t checksum(const char* from, size_t bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(from), static_cast<uInt>(bytes)));
}

// Writes the checksum of a header, taken with zeros in its own place.
void seal(char* header, size_t bytes) { put(header + kHeaderCrcAt, checksum(header, bytes)); }

}  // namespace

Status OperationLog::create(const std::string& path, std::unique_ptr<OperationLog>* out) {
  int fd = -1;
  if (Status status = open_output("operation log", path, O_TRUNC, &fd); !status.is_ok())
    return status;
  out->reset(new OperationLog(fd, path));
  char header[kFileHeaderBytes] = {};
  std::memcpy(header, kMagic, 8);
  char* at = put(header + 8, kVersion);
  at = put(at, kBlockBytes);
  put(at, static_cast<uint64_t>(board_ns()));
  seal(header, sizeof header);
  if (!write_all(fd, {header, sizeof header})) return output_error("operation log", path);
  return Status::ok();
}

OperationLog::~OperationLog() { ::close(fd_); }

Status OperationLog::append(const Block& block, std::vector<char>& bytes) {
  const size_t payload_bytes = bytes.size() - kHeaderBytes;
  char* at = put(bytes.data(), kBlockMagic);
  at = put(at, block.thread);
  at = put(at, uint16_t{0});
  at = put(at, block.triple_count);
  at = put(at, static_cast<uint32_t>(payload_bytes));
  at = put(at, static_cast<uint64_t>(block.base_board_ns));
  at = put(at, checksum(bytes.data() + kHeaderBytes, payload_bytes));
  at = put(at, uint32_t{0});
  const std::lock_guard lock(mutex_);
  put(at, sequence_++);
  seal(bytes.data(), kHeaderBytes);
  if (status_.is_ok() && !write_all(fd_, {bytes.data(), bytes.size()}))
    status_ = output_error("operation log", path_);
  return status_;
}

OperationLogWriter::OperationLogWriter(OperationLog& log, uint16_t thread, int64_t start_board_ns)
    : log_(log), previous_end_ns_(start_board_ns) {
  header_.thread = thread;
  block_.reserve(OperationLog::kHeaderBytes + OperationLog::kBlockBytes);
  start_block();
}

void OperationLogWriter::start_block() {
  block_.resize(OperationLog::kHeaderBytes + OperationLog::kBlockBytes);
  at_ = block_.data() + OperationLog::kHeaderBytes;
  limit_ = block_.data() + block_.size() - kLongestPair;
  header_.base_board_ns = previous_end_ns_;
  due_ns_ = previous_end_ns_ + OperationLog::kBlockNs;
  triple_count_ = 0;
  for (uint64_t& size : sizes_) size = kUnknownSize;
}

void OperationLogWriter::add_size(int kind, uint64_t bytes) {
  sizes_[kind] = bytes;
  put(0x10u | static_cast<uint64_t>(kind));
  put(bytes);
  put(0);
  ++triple_count_;
}

void OperationLogWriter::write_block() {
  if (triple_count_ > 0) {
    header_.triple_count = triple_count_;
    block_.resize(static_cast<size_t>(at_ - block_.data()));
    Status status = log_.append(header_, block_);
    if (status_.is_ok()) status_ = std::move(status);
  }
  start_block();
}

Status OperationLogWriter::flush() {
  write_block();
  return status_;
}

}  // namespace opjoule
