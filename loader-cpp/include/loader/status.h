// The outcome of an operation. Every function that can fail returns one; only main() exits.
//
// Thread safety: a Status is a value; share it like an int.
#pragma once

#include <string>
#include <utility>

namespace opjoule {

enum class StatusCode {
  kOk,
  kNotFound,     // the key is not in the database
  kExists,       // an insert met an existing key (engines that can tell)
  kBusy,         // still locked or stalled after the documented retries
  kBadInput,     // a property, file or argument is wrong: the user mends it
  kMismatch,     // the database was written with other settings
  kNoSpace,      // the file system or the engine is full
  kIo,           // the device or the connection failed
  kCorrupt,      // the stored data contradicts itself or fails verification
  kUnsupported,  // the engine cannot do this
  kInterrupted,  // SIGINT or SIGTERM
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok() { return {}; }
  static Status not_found() { return {StatusCode::kNotFound, {}}; }

  [[nodiscard]] bool is_ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] bool is_not_found() const { return code_ == StatusCode::kNotFound; }
  [[nodiscard]] StatusCode code() const { return code_; }
  // One clear line, without a trailing full stop or newline; empty where the code says it all.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

}  // namespace opjoule
