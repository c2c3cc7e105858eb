#include "link/grant.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "errors.h"

namespace opjoule::rig {
namespace {

constexpr int kGoOn = 0;

/// A grant, and the host's end of it.
struct Host {
  Host() {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    fd = ends[0];
    grant.emplace(ends[1]);
  }
  ~Host() {
    if (fd >= 0) close(fd);
  }
  void say(const std::string& text) const {
    REQUIRE(send(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  std::string hear() const {
    char text[64];
    const ssize_t count = recv(fd, text, sizeof text, 0);
    return {text, static_cast<std::size_t>(count > 0 ? count : 0)};
  }
  int fd = -1;
  std::optional<Grant> grant;
};

TEST_CASE("time is asked for and answered, in whole lines however they come") {
  Host host;
  host.say("pass 10");
  host.say("00\nread 2500\n");
  REQUIRE(host.grant->wait(kGoOn));
  CHECK(host.grant->until_ns() == 1000);
  CHECK_FALSE(host.grant->for_reading());
  host.grant->reached(1000);
  CHECK(host.hear() == "1000\n");
  REQUIRE(host.grant->wait(kGoOn));
  CHECK(host.grant->until_ns() == 2500);
  CHECK(host.grant->for_reading());
  host.grant->reached(1700);
  CHECK(host.hear() == "1700\n");
  CHECK(host.grant->now_ns() == 1700);
  CHECK_FALSE(host.grant->asked());
}

TEST_CASE("a signal ends the waiting") {
  Host host;
  const volatile int stop = 15;
  CHECK_FALSE(host.grant->wait(stop));
}

TEST_CASE("the end answers what is asked, and the host sees it") {
  Host host;
  host.say("read 700\n");
  REQUIRE(host.grant->wait(kGoOn));
  host.grant->end();
  CHECK(host.hear() == "700\n");
  CHECK(host.hear().empty());
}

TEST_CASE("time that goes back, other words and a host that is gone are refused") {
  for (const char* line : {"pass -1\n", "pass\n", "run 5\n", "\n"}) {
    Host host;
    host.say(line);
    CHECK_THROWS_AS(host.grant->wait(kGoOn), RigError);
  }
  Host host;
  host.say("pass 5\n");
  REQUIRE(host.grant->wait(kGoOn));
  host.grant->reached(5);
  host.say("pass 4\n");
  CHECK_THROWS_AS(host.grant->wait(kGoOn), RigError);
  close(host.fd);
  host.fd = -1;
  Host gone;
  close(gone.fd);
  gone.fd = -1;
  CHECK_THROWS_AS(gone.grant->wait(kGoOn), RigError);
  CHECK_THROWS_AS(Grant(9999), RigError);
}

}  // namespace
}  // namespace opjoule::rig
