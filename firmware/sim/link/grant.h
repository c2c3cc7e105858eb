// Time that the host grants, step by step: with it nothing depends on how busy the computer is.
#pragma once

#include <cstdint>
#include <string>

namespace opjoule::rig {

/// The rig's side of --grant. The host asks a line at a time and waits for the answer, one line
/// with the time reached [ns]:
///   pass NS   until this time
///   read NS   until this time, or until the host can read something
/// Times count from the rig's start and never go back. One thread.
class Grant {
 public:
  /// `fd`: an open stream socket or the like, inherited; it is closed with this object.
  explicit Grant(int fd);
  ~Grant();
  Grant(const Grant&) = delete;
  Grant& operator=(const Grant&) = delete;

  /// The host waits for an answer.
  bool asked() const { return asked_; }
  /// Waits until the host asks, or `stop` becomes true by a signal; returns whether it has asked.
  /// Throws RigError: the host has closed its end, or wrote something else.
  bool wait(const volatile int& stop);
  /// Time up to which the host has granted [ns].
  std::int64_t until_ns() const { return until_ns_; }
  /// Time that was answered last [ns].
  std::int64_t now_ns() const { return now_ns_; }
  /// The host wants to know as soon as there is something to read.
  bool for_reading() const { return for_reading_; }
  /// Answers what the host has asked.
  void reached(std::int64_t now_ns);
  /// Answers what may be asked and closes: from here on the host keeps time by itself.
  void end();

 private:
  void take(const std::string& line);

  int fd_;
  std::string text_;
  bool asked_ = false, for_reading_ = false;
  std::int64_t now_ns_ = 0, until_ns_ = 0;
};

}  // namespace opjoule::rig
