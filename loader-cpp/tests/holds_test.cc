// How threads that wrote too much are held.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "medium-sim/guardian.h"
#include "medium-sim/writers.h"

namespace opjoule {
namespace {

TEST_CASE("a thread that has ended is not held, and its process not stopped") {
  Guardian guardian;
  REQUIRE(Guardian::start(&guardian).is_ok());
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  Holds holds(&guardian);
  holds.hold(child, child);
  CHECK(holds.held() == 0);
  CHECK(holds.held_by_signal() == 0);
  CHECK_FALSE(holds.any());
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace opjoule
