// The socket of `medium-sim serve`: programs that `medium-sim run` introduces, with the listeners
// of their filters.
//
// Thread safety: none.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "loader/status.h"
#include "medium-sim/guardian.h"
#include "medium-sim/sync_calls.h"

namespace opjoule {

class Runs {
 public:
  // `watch` gets the process of each run before its command starts, `fault` what is to be told.
  Runs(Guardian* guardian, std::function<void(pid_t)> watch,
       std::function<void(const std::string&)> fault)
      : guardian_(guardian), watch_(std::move(watch)), fault_(std::move(fault)) {}
  ~Runs();
  Runs(const Runs&) = delete;
  Runs& operator=(const Runs&) = delete;

  // Makes the socket; one that is there is replaced. kBadInput, kIo.
  Status open(const std::string& path);

  // Appends what poll(2) is to wait for; attend() gets the same entries afterwards.
  void append_to(std::vector<pollfd>* fds) const;
  // Takes new runs, and gives each listener with waiting calls to `receive`, each whose programs
  // have all ended to `ended`.
  void attend(const pollfd* fds, const std::function<void(Programs*)>& receive,
              const std::function<void(Programs*)>& ended);

 private:
  struct Connection {
    int fd;
    pid_t pid;
    Programs* programs = nullptr;
    bool closed = false;
  };

  void accept_run();
  void hear(Connection* connection);
  Programs* add_programs(const std::string& introduction, int listener);

  Guardian* const guardian_;
  const std::function<void(pid_t)> watch_;
  const std::function<void(const std::string&)> fault_;
  std::string path_;
  int socket_ = -1;
  std::vector<Connection> connections_;
  std::vector<std::unique_ptr<Programs>> programs_;
};

}  // namespace opjoule
