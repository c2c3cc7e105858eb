#include "medium-sim/guardian.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "loader/system_error.h"
#include "medium-sim/descriptor_passing.h"
#include "medium-sim/listener.h"

namespace opjoule {
namespace {

// Calls that serve may have received without noting them before it ended.
constexpr uint64_t kUnnoted = 64;
constexpr uint64_t kRangeMax = 1 << 20;

}  // namespace

// The guardian's own side.
class Guardian::Watch {
 public:
  Watch(Shared* shared, int socket) : shared_(shared), socket_(socket) {}

  // Until serve and every program have ended.
  void run() {
    while (socket_ >= 0 || any_listener()) {
      std::vector<pollfd> fds{{socket_, POLLIN, 0}};
      for (const auto& listener : listeners_)
        fds.push_back(
            {listener ? listener->fd() : -1, static_cast<short>(socket_ < 0 ? POLLIN : 0), 0});
      if (::poll(fds.data(), fds.size(), -1) < 0) continue;
      for (size_t i = 1; i < fds.size(); ++i) attend(&listeners_[i - 1], fds[i].revents);
      if (fds[0].revents != 0) hear_serve();
    }
  }

 private:
  [[nodiscard]] bool any_listener() const {
    for (const auto& listener : listeners_)
      if (listener) return true;
    return false;
  }

  static void attend(std::unique_ptr<Listener>* listener, short events) {
    seccomp_notif call;
    if ((events & POLLIN) != 0 && (*listener)->receive(&call)) (*listener)->let_run(call.id);
    if ((events & (POLLHUP | POLLERR | POLLNVAL)) != 0) listener->reset();
  }

  void hear_serve() {
    std::string text;
    int fd = -1;
    if (!receive_message(socket_, &text, &fd)) return take_over();
    size_t place = 0;
    std::from_chars(text.data(), text.data() + text.size(), place);
    if (fd < 0 || place >= kListenersMax) return;
    if (listeners_.size() <= place) listeners_.resize(place + 1);
    listeners_[place] = std::make_unique<Listener>(fd);
  }

  void take_over() {
    ::close(socket_);
    socket_ = -1;
    for (size_t place = 0; place < listeners_.size(); ++place) {
      if (!listeners_[place]) continue;
      const uint64_t newest = shared_->ranges[place].newest.load() + kUnnoted;
      uint64_t oldest = shared_->ranges[place].oldest.load();
      if (newest - oldest > kRangeMax) oldest = newest - kRangeMax;
      for (uint64_t id = oldest; id != newest + 1; ++id) listeners_[place]->let_run(id);
    }
    for (const auto& stopped : shared_->stopped)
      if (const pid_t pid = stopped.load(); pid > 0) ::kill(pid, SIGCONT);
  }

  Shared* shared_;
  int socket_;
  std::vector<std::unique_ptr<Listener>> listeners_;
};

Status Guardian::start(Guardian* out) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int sockets[2];
  if (memory == MAP_FAILED || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0)
    return system_error("guardian");
  out->shared_ = static_cast<Shared*>(memory);  // all zero
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("guardian");
  if (pid == 0) {
    ::setsid();  // a signal to serve's group is none to it
    for (int fd = 0; fd < 1024; ++fd)
      if (fd != sockets[0]) ::close(fd);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
    Watch(out->shared_, sockets[0]).run();
    ::_exit(0);
  }
  ::close(sockets[0]);
  out->socket_ = sockets[1];
  return Status::ok();
}

int Guardian::add(int listener) {
  for (int place = 0; place < kListenersMax; ++place) {
    Range& range = shared_->ranges[place];
    if (range.used.load()) continue;
    range.used = true;
    range.oldest = 1;
    range.newest = 0;
    return send_message(socket_, std::to_string(place), listener) ? place : -1;
  }
  return -1;
}

void Guardian::note_oldest(int place, uint64_t oldest) { shared_->ranges[place].oldest = oldest; }

void Guardian::note_newest(int place, uint64_t newest) { shared_->ranges[place].newest = newest; }

bool Guardian::note_stopped(pid_t pid) {
  for (auto& stopped : shared_->stopped) {
    if (stopped.load() != 0) continue;
    stopped = pid;
    return true;
  }
  return false;
}

void Guardian::note_continued(pid_t pid) {
  for (auto& stopped : shared_->stopped)
    if (stopped.load() == pid) stopped = 0;
}

void Guardian::remove(int place) { shared_->ranges[place].used = false; }

}  // namespace opjoule
