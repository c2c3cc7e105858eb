#include "link/pty_link.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "errors.h"

namespace opjoule::rig {
namespace {

namespace fs = std::filesystem;

void make_raw(int fd) {
  termios settings{};
  tcgetattr(fd, &settings);
  cfmakeraw(&settings);
  tcsetattr(fd, TCSANOW, &settings);
}

/// Only a symlink may be replaced: anything else at that name is not ours.
void place_symlink(const std::string& target, const std::string& link) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(link, error)) && !fs::is_symlink(link, error))
    throw RigError("--pty " + link + " exists and is no symlink: choose another name");
  const std::string fresh = link + ".new";
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) throw RigError("cannot make the symlink " + link + ": " + error.message());
}

}  // namespace

PtyLink::PtyLink(const std::string& link, double patience_s)
    : link_(link), patience_s_(patience_s) {
  master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0)
    throw RigError(std::string("cannot make a pseudo-terminal: ") + std::strerror(errno), 1);
  slave_path_ = ptsname(master_);
  // Kept open, so that the host may close and open it again and the settings stay.
  slave_ = open(slave_path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave_ < 0) throw RigError("cannot open " + slave_path_ + ": " + std::strerror(errno), 1);
  make_raw(slave_);
  if (!link_.empty()) place_symlink(slave_path_, link_);
}

PtyLink::~PtyLink() { unplug(); }

void PtyLink::unplug() {
  if (master_ < 0) return;
  std::error_code error;
  if (!link_.empty() && fs::read_symlink(link_, error) == slave_path_) fs::remove(link_, error);
  close(slave_);
  close(master_);
  master_ = slave_ = -1;
}

std::vector<std::uint8_t> PtyLink::receive() {
  std::vector<std::uint8_t> bytes;
  std::uint8_t piece[4096];
  // A read that finds nothing waits for what the kernel is yet to carry over; one that finds a part
  // does not.
  for (ssize_t count = 0; master_ >= 0 && (count = read(master_, piece, sizeof piece)) > 0;)
    bytes.insert(bytes.end(), piece, piece + count);
  if (!bytes.empty()) host_gone_ = false;
  return bytes;
}

void PtyLink::send(const std::vector<std::uint8_t>& bytes, const volatile int& stop) {
  // In slices, since a signal just before a wait does not end it.
  constexpr double kSendSlice_s = 0.1;
  std::size_t done = 0;
  double waited_s = 0;
  if (sent_unsettled_ == 0) unread_before_ = unread_bytes();
  while (done < bytes.size() && master_ >= 0 && !host_gone_ && !stop) {
    const ssize_t count = write(master_, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
      waited_s = 0;
      continue;
    }
    const double slice_s = std::min(kSendSlice_s, patience_s_ - waited_s);
    pollfd room{master_, POLLOUT, 0};
    if (poll(&room, 1, static_cast<int>(std::ceil(slice_s * 1000))) == 0) waited_s += slice_s;
    host_gone_ = waited_s >= patience_s_;
  }
  sent_unsettled_ += done;
  discarded_ += bytes.size() - done;
}

void PtyLink::settle(const volatile int& stop) {
  constexpr double kStep_s = 0.1e-3;
  constexpr std::size_t kRoom = 4000;  // of the line discipline; more waits behind it
  const std::size_t wanted = std::min(unread_before_ + sent_unsettled_, kRoom);
  double waited_s = 0;
  for (; sent_unsettled_ > 0 && slave_ >= 0 && unread_bytes() < wanted; waited_s += kStep_s) {
    if (stop || waited_s >= patience_s_) break;
    wait_readable(-1, -1, kStep_s);
  }
  sent_unsettled_ = 0;
}

std::size_t PtyLink::unread_bytes() const {
  int count = 0;
  if (slave_ < 0) return 1;  // unknown: the host may have locked the port
  // The count does not include bytes that a thread of the kernel has yet to move; poll() waits for
  // it.
  pollfd input{slave_, POLLIN, 0};
  poll(&input, 1, 0);
  if (ioctl(slave_, FIONREAD, &count) != 0) return 0;
  return static_cast<std::size_t>(count);
}

/// Whether anyone but this process has the port open: the master reports a hang-up when nobody has.
bool PtyLink::host_has_port() {
  close(slave_);
  pollfd line{master_, 0, 0};
  poll(&line, 1, 0);
  slave_ = open(slave_path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (!(line.revents & POLLHUP)) return true;
  if (slave_ >= 0) make_raw(slave_);
  return false;
}

bool PtyLink::drain(const volatile int& stop) {
  constexpr double kStep_s = 0.005;
  // On a kernel whose poll() does not wait for those bytes, the count has to stay 0 for a while.
  constexpr double kSettled_s = 0.2;
  if (master_ < 0 || !host_has_port()) return false;
  double since_change_s = 0;
  std::size_t last = unread_bytes();
  while (!host_gone_ && !stop && since_change_s < (last > 0 ? patience_s_ : kSettled_s)) {
    wait_readable(-1, -1, kStep_s);
    const std::size_t now = unread_bytes();
    since_change_s = now == last ? since_change_s + kStep_s : 0;
    last = now;
  }
  return last == 0;
}

void wait_readable(int fd, int other_fd, double timeout_s) {
  pollfd fds[2] = {{fd, POLLIN, 0}, {other_fd, POLLIN, 0}};
  const timespec timeout{static_cast<time_t>(timeout_s),
                         static_cast<long>((timeout_s - std::floor(timeout_s)) * 1e9)};
  ppoll(fds, 2, &timeout, nullptr);
}

}  // namespace opjoule::rig
