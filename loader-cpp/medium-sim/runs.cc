#include "medium-sim/runs.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "loader/system_error.h"
#include "medium-sim/descriptor_passing.h"

namespace opjoule {

Runs::~Runs() {
  for (const Connection& connection : connections_) ::close(connection.fd);
  if (socket_ < 0) return;
  ::close(socket_);
  ::unlink(path_.c_str());
}

Status Runs::open(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return {StatusCode::kBadInput, "--socket " + path + ": the path is too long"};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  path_ = path;
  ::unlink(path.c_str());
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const mode_t own = ::umask(0077);  // of this user alone
  const int bound = ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error_number = errno;
  ::umask(own);
  if (bound != 0 || ::listen(socket_, 64) != 0)
    return system_error("--socket " + path, bound != 0 ? error_number : errno);
  return Status::ok();
}

void Runs::append_to(std::vector<pollfd>* fds) const {
  fds->push_back({socket_, POLLIN, 0});
  for (const auto& programs : programs_) fds->push_back({programs->listener.fd(), POLLIN, 0});
  for (const Connection& connection : connections_) fds->push_back({connection.fd, POLLIN, 0});
}

void Runs::attend(const pollfd* fds, const std::function<void(Programs*)>& receive,
                  const std::function<void(Programs*)>& ended) {
  const bool new_run = fds->revents != 0;
  const pollfd* at = fds + 1;
  const size_t programs_count = programs_.size();
  for (size_t i = 0; i < programs_count; ++i, ++at) {
    if ((at->revents & POLLIN) != 0) receive(programs_[i].get());
    if ((at->revents & (POLLHUP | POLLERR)) == 0) continue;
    ended(programs_[i].get());
    guardian_->remove(programs_[i]->place);
    for (Connection& connection : connections_)
      if (connection.programs == programs_[i].get()) connection.programs = nullptr;
    programs_[i].reset();
  }
  for (Connection& connection : connections_)
    if ((at++)->revents != 0) hear(&connection);
  std::erase_if(programs_, [](const auto& programs) { return !programs; });
  std::erase_if(connections_, [](const Connection& connection) { return connection.closed; });
  if (new_run) accept_run();
}

void Runs::accept_run() {
  const int fd = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  connections_.push_back({fd, peer.pid});
}

// First "FIRST END why", with the listener or, where there is none, why; then the round trip [ns].
void Runs::hear(Connection* connection) {
  std::string text;
  int listener = -1;
  if (!receive_message(connection->fd, &text, &listener)) {
    ::close(connection->fd);
    connection->closed = true;
  } else if (connection->programs != nullptr) {
    connection->programs->half_round_trip_ns = std::atoll(text.c_str()) / 2;
    send_message(connection->fd, "go");
  } else {
    watch_(connection->pid);
    connection->programs = add_programs(text, listener);
    send_message(connection->fd, "ok");
  }
}

Programs* Runs::add_programs(const std::string& introduction, int listener) {
  DescriptorRange synced;
  int why_at = 0;
  std::sscanf(introduction.c_str(), "%d %d %n", &synced.first, &synced.end, &why_at);
  if (listener < 0) {
    fault_("the kernel does not let sync calls wait for the simulated medium (" +
           introduction.substr(static_cast<size_t>(why_at)) + "): the command is not slowed");
    return nullptr;
  }
  const int place = guardian_->add(listener);
  if (place < 0) {
    ::close(listener);
    fault_("more than " + std::to_string(Guardian::kListenersMax) +
           " commands run at once: sync calls of further ones fail");
    return nullptr;
  }
  programs_.push_back(
      std::unique_ptr<Programs>(new Programs{Listener(listener), place, synced, 0, {}, 0}));
  return programs_.back().get();
}

}  // namespace opjoule
