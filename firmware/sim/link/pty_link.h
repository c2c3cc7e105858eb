// The serial line to the host: a pseudo-terminal with a fixed name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace opjoule::rig {

/// The host opens `link` (or slave_path()) as it would a USB serial port. Bytes are never dropped
/// for lack of room: writing waits for the host. Not copyable; one thread.
class PtyLink {
 public:
  /// Makes the pty and, unless `link` is empty, the symlink to it, replacing an old symlink.
  /// `patience_s`: a host that reads nothing for so long counts as gone; from then on output is
  /// discarded and counted, until the host sends again. Throws RigError.
  PtyLink(const std::string& link, double patience_s);
  ~PtyLink();
  PtyLink(const PtyLink&) = delete;
  PtyLink& operator=(const PtyLink&) = delete;

  const std::string& slave_path() const { return slave_path_; }

  /// Descriptor that is readable when the host has sent something; -1 once unplugged.
  int fd() const { return master_; }

  /// What the host has sent; never waits.
  std::vector<std::uint8_t> receive();

  /// Sends bytes to the host; waits for room, at most until a signal sets `stop`.
  void send(const std::vector<std::uint8_t>& bytes, const volatile int& stop);

  /// Waits until what was sent can be read, which takes the kernel a moment; the host must not read
  /// meanwhile. At most the patience.
  void settle(const volatile int& stop);

  /// Waits until the host has taken everything sent, within the patience, or has closed the port.
  /// Returns whether it has taken all.
  bool drain(const volatile int& stop);

  /// Ends the line as a pulled cable does: the host sees its port vanish.
  void unplug();

  std::uint64_t discarded() const { return discarded_; }

 private:
  std::size_t unread_bytes() const;
  bool host_has_port();

  std::string link_, slave_path_;
  double patience_s_;
  int master_ = -1, slave_ = -1;
  bool host_gone_ = false;
  std::size_t sent_unsettled_ = 0;  ///< since settle()
  std::size_t unread_before_ = 0;   ///< when the first of these were sent
  std::uint64_t discarded_ = 0;
};

/// Waits until one of `fds` (each may be -1) can be read, or `timeout_s` is over, or a signal
/// comes.
void wait_readable(int fd, int other_fd, double timeout_s);

}  // namespace opjoule::rig
