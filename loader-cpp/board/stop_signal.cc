#include "board/stop_signal.h"

#include <signal.h>
#include <unistd.h>

namespace opjoule {
namespace {

std::atomic<bool> flag{false};
std::atomic<bool> signalled{false};
std::atomic<bool> requested{false};
static_assert(std::atomic<bool>::is_always_lock_free,
              "a signal handler may only touch lock-free atomics");

constexpr int kInterruptedExit = 130;

void on_signal(int) {
  if (signalled.exchange(true)) ::_exit(kInterruptedExit);
  flag.store(true);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action{};
  action.sa_handler = on_signal;  // without SA_RESTART: a blocked read of stdin ends
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return signalled.load() || requested.load(); }

void request_stop() {
  requested.store(true);
  flag.store(true);
}

std::atomic<bool>& stop_flag() { return flag; }

}  // namespace opjoule
