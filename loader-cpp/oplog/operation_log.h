// The operation log: start, duration, kind, outcome and bytes of every operation. Takes constant
// memory.
//
// File: 32 byte header, then blocks of at most 64 KiB payload or a quarter of a second, each
// written with one write() by the thread that filled it: byte grammar in
// docs/reference/operation-log.md. An operation takes 3 bytes when both times are below 128 ns, 5
// below 16 us, 7 below 2 ms.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "loader/status.h"
#include "oplog/operation_kind.h"

namespace opjoule {

// The file. Thread safety: append() from any thread.
class OperationLog {
 public:
  static constexpr uint32_t kBlockBytes = 64 * 1024;
  // An operation that ends so long after its block's base is the block's last.
  static constexpr int64_t kBlockNs = 250'000'000;

  // Replaces `path`. kIo, kNoSpace, kBadInput (no such folder) with the path.
  static Status create(const std::string& path, std::unique_ptr<OperationLog>* out);
  ~OperationLog();
  OperationLog(const OperationLog&) = delete;
  OperationLog& operator=(const OperationLog&) = delete;

  struct Block {
    uint16_t thread = 0;
    uint32_t triple_count = 0;
    int64_t base_board_ns = 0;  // end of the operation before the block's first
  };
  // `bytes` has room for the block's header before the payload. After a failed write nothing more
  // is written, and every call gives the first failure.
  Status append(const Block& block, std::vector<char>& bytes);
  static constexpr size_t kHeaderBytes = 40;

 private:
  OperationLog(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  std::mutex mutex_;
  int fd_;
  std::string path_;
  uint64_t sequence_ = 0;
  Status status_;
};

// Writes the operations of one thread. Thread safety: none.
class OperationLogWriter {
 public:
  // start_board_ns: the first operation starts no earlier.
  OperationLogWriter(OperationLog& log, uint16_t thread, int64_t start_board_ns);

  // Operations are added in the order of their ends, each starting no earlier than the one before
  // ended. True if it wrote a block: that may take long.
  bool add(OperationKind kind, bool ok, int64_t start_board_ns, int64_t end_board_ns,
           uint64_t bytes) {
    bool wrote = false;
    if (at_ > limit_) [[unlikely]] {
      write_block();
      wrote = true;
    }
    const int number = static_cast<int>(kind);
    if (bytes != sizes_[number]) [[unlikely]]
      add_size(number, bytes);
    put(static_cast<uint64_t>(number) | (ok ? 8u : 0u));
    put(static_cast<uint64_t>(start_board_ns - previous_end_ns_));
    put(static_cast<uint64_t>(end_board_ns - start_board_ns));
    previous_end_ns_ = end_board_ns;
    ++triple_count_;
    if (end_board_ns > due_ns_) [[unlikely]] {
      write_block();
      wrote = true;
    }
    return wrote;
  }
  // Writes what is buffered; gives the log's first failure.
  Status flush();
  // The log's first failure that this thread has met. To be asked for between operations, since
  // add() writes a block now and then.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  static constexpr uint64_t kUnknownSize = UINT64_MAX;
  static constexpr size_t kLongestPair = 6 * 10;  // a size and an operation, ten bytes a number

  // LEB128.
  void put(uint64_t value) {
    while (value >= 0x80) {
      *at_++ = static_cast<char>(value | 0x80);
      value >>= 7;
    }
    *at_++ = static_cast<char>(value);
  }
  void add_size(int kind, uint64_t bytes);
  void write_block();
  void start_block();

  OperationLog& log_;
  std::vector<char> block_;  // header, then payload
  char* at_ = nullptr;
  char* limit_ = nullptr;
  int64_t previous_end_ns_;
  int64_t due_ns_ = 0;
  uint64_t sizes_[kOperationKinds] = {};
  OperationLog::Block header_;
  uint32_t triple_count_ = 0;
  Status status_;
};

}  // namespace opjoule
