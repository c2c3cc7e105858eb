// The workload's end of the marks socket.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

class MarksClient {
 public:
  // kBadInput; kIo with the path if no probe serves it.
  static Status connect(const std::string& path, std::unique_ptr<MarksClient>* out);
  ~MarksClient();
  MarksClient(const MarksClient&) = delete;
  MarksClient& operator=(const MarksClient&) = delete;

  // Whole lines, each with its newline.
  Status send(std::string_view lines);
  // Waits until every line sent was taken or refused; `taken` is their number on this connection.
  // kIo where the probe does not answer within limit_s.
  Status sync(double limit_s, uint64_t* taken);

 private:
  explicit MarksClient(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  const int fd_;
  const std::string path_;
};

}  // namespace opjoule
