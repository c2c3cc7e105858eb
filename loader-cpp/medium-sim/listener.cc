#include "medium-sim/listener.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS _IOW('!', 4, __u64)  // Linux 6.6
#endif

namespace opjoule {
namespace {

constexpr uint64_t kSyncWakeUp = 1;  // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP

}  // namespace

Listener::Listener(int fd) : fd_(fd) { ::ioctl(fd_, SECCOMP_IOCTL_NOTIF_SET_FLAGS, kSyncWakeUp); }

Listener::~Listener() { ::close(fd_); }

bool Listener::receive(seccomp_notif* out) const {
  std::memset(out, 0, sizeof *out);  // the kernel insists
  return ::ioctl(fd_, SECCOMP_IOCTL_NOTIF_RECV, out) == 0;
}

bool Listener::valid(uint64_t id) const {
  return ::ioctl(fd_, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

void Listener::answer(uint64_t id, int64_t value, int error_number) const {
  seccomp_notif_resp response{id, error_number == 0 ? value : 0, -error_number, 0};
  ::ioctl(fd_, SECCOMP_IOCTL_NOTIF_SEND, &response);  // ENOENT: the caller has ended
}

void Listener::let_run(uint64_t id) const {
  seccomp_notif_resp response{id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  ::ioctl(fd_, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

bool Listener::answer_descriptor(uint64_t id, int fd, int number, bool close_on_exec) const {
  seccomp_notif_addfd addfd{id, SECCOMP_ADDFD_FLAG_SETFD, static_cast<uint32_t>(fd),
                            static_cast<uint32_t>(number), close_on_exec ? O_CLOEXEC : 0U};
  if (::ioctl(fd_, SECCOMP_IOCTL_NOTIF_ADDFD, &addfd) < 0) return false;
  answer(id, number, 0);
  return true;
}

}  // namespace opjoule
