// A FIFO through which a rig follows the board's activity: sample rows, and sync edges as "e NS
// LEVEL".
//
// Lines wait in memory while the reader is slow; the caller never waits. If the reader lags by more
// than a mebibyte, whole lines are left out. Thread safety: write() from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

class LiveFeed {
 public:
  // Waits for somebody to open the FIFO for reading, for kReaderLimitS at most. kBadInput, kIo.
  static Status open(const std::string& path, std::unique_ptr<LiveFeed>* out);
  ~LiveFeed();
  LiveFeed(const LiveFeed&) = delete;
  LiveFeed& operator=(const LiveFeed&) = delete;

  // A line with its newline. If the reader has gone, that is no failure: nothing is written any
  // more.
  void write(std::string_view line);
  // Lines left out since the start.
  [[nodiscard]] uint64_t left_out() const;

 private:
  explicit LiveFeed(int fd) : fd_(fd) {}
  void flush_locked();

  const int fd_;
  mutable std::mutex mutex_;
  std::string pending_;
  uint64_t left_out_ = 0;
  bool reader_gone_ = false;
};

}  // namespace opjoule
