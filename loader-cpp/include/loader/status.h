// The outcome of an operation. Every function that can fail returns one; only main() exits.
//
// Thread safety: a Status is a value; share it like an int.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace opjoule {

enum class StatusCode {
  kOk,
  kNotFound,     // the key is not in the database
  kExists,       // an insert met an existing key (engines that can tell)
  kBusy,         // still locked or stalled after all retries
  kBadInput,     // a property, file or argument is wrong: the user mends it
  kMismatch,     // the database was written with other settings
  kNoSpace,      // the file system or the engine is full
  kIo,           // the device or the connection failed
  kCorrupt,      // the stored data contradicts itself or fails verification
  kUnsupported,  // the engine cannot do this
  kIncomplete,   // ended before it had done what was asked
  kInterrupted,  // SIGINT or SIGTERM
};

// Small and cheap to pass on after a success, as nearly every operation is one: a message takes
// memory only where there is one.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code),
        message_(message.empty() ? nullptr
                                 : std::make_unique<const std::string>(std::move(message))) {}
  Status(const Status& other) : Status(other.code_, other.message()) {}
  Status& operator=(const Status& other) { return *this = Status(other); }
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;
  ~Status() = default;

  static Status ok() { return {}; }
  static Status not_found() { return {StatusCode::kNotFound, {}}; }

  [[nodiscard]] bool is_ok() const { return code_ == StatusCode::kOk; }
  [[nodiscard]] bool is_not_found() const { return code_ == StatusCode::kNotFound; }
  [[nodiscard]] StatusCode code() const { return code_; }
  // One clear line, without a trailing full stop or newline; empty where the code says it all.
  [[nodiscard]] const std::string& message() const {
    static const std::string none;
    return message_ == nullptr ? none : *message_;
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::unique_ptr<const std::string> message_;
};

}  // namespace opjoule
