// Real processes that burn a known amount of processor time, watched in both ways of finding them.
#include "processes/watched_processes.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "board/clock.h"
#include "processes/watched_process.h"

namespace opjoule {
namespace {

constexpr int64_t kMs = 1'000'000;

int64_t own_cpu_ns() { return static_cast<int64_t>(process_cpu_s() * 1e9); }

void burn(int64_t cpu_ns) {
  const int64_t until_ns = own_cpu_ns() + cpu_ns;
  while (own_cpu_ns() < until_ns) {
  }
}

// A process that waits for a word at each of its steps, and says when it is done with it.
class Steps {
 public:
  explicit Steps(std::vector<std::function<void()>> steps) {
    REQUIRE(pipe(go_) == 0);
    REQUIRE(pipe(done_) == 0);
    pid_ = fork();
    if (pid_ != 0) return;
    char word = 0;
    for (const auto& step : steps) {
      if (::read(go_[0], &word, 1) != 1) break;
      step();
      if (write(done_[1], "d", 1) != 1) break;
    }
    // It stays until it is let go.
    while (::read(go_[0], &word, 1) < 0) {
    }
    _exit(0);
  }
  ~Steps() {
    if (!reaped_) reap();
    for (const int fd : {go_[0], go_[1], done_[0], done_[1]}) close(fd);
  }
  void step() const {
    char word = 0;
    REQUIRE(write(go_[1], "g", 1) == 1);
    REQUIRE(::read(done_[0], &word, 1) == 1);
  }
  // It has ended then, but was not waited for.
  void let_go() const {
    REQUIRE(write(go_[1], "g", 1) == 1);
    siginfo_t about{};
    REQUIRE(waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOWAIT) == 0);
  }
  void reap() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  int go_[2];
  int done_[2];
  pid_t pid_ = 0;
  bool reaped_ = false;
};

constexpr FindChildren kBoth[] = {FindChildren::kAsTheKernelCan, FindChildren::kThroughEveryStat};

uint64_t forks = 0;  // each reading looks for descendants

int64_t cpu_ns(WatchedProcesses& watched) { return watched.read(++forks).used.cpu_ns; }

void run_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
}

TEST_CASE("what a process used before it was watched does not count, what it uses then does") {
  const Steps process({[] { burn(40 * kMs); }, [] { burn(30 * kMs); }});
  process.step();
  WatchedProcesses watched;
  REQUIRE(watched.watch(process.pid()).is_ok());
  CHECK(cpu_ns(watched) < 10 * kMs);
  process.step();
  const int64_t used_ns = cpu_ns(watched);
  CHECK(used_ns >= 29 * kMs);
  CHECK(used_ns < 65 * kMs);  // with what it used before it would be 70
}

TEST_CASE("descendants count while they live, and what they used stays when they have ended") {
  for (const FindChildren how : kBoth) {
    pid_t child = 0;
    int shared[2];
    REQUIRE(pipe(shared) == 0);
    const Steps process({[&] {
                           child = fork();
                           if (child == 0) {
                             burn(60 * kMs);
                             run_child([] { burn(60 * kMs); });
                             if (write(shared[1], "d", 1) != 1) _exit(1);
                             pause();
                           }
                           char word = 0;
                           if (::read(shared[0], &word, 1) != 1) _exit(1);
                         },
                         [&] {
                           kill(child, SIGKILL);
                           waitpid(child, nullptr, 0);
                         }});
    WatchedProcesses watched(how);
    REQUIRE(watched.watch(process.pid()).is_ok());
    process.step();
    const int64_t alive_ns = cpu_ns(watched);
    CHECK(alive_ns >= 110 * kMs);
    CHECK(watched.read(++forks).rss_bytes > 0);
    process.step();
    const int64_t ended_ns = cpu_ns(watched);
    CHECK(ended_ns >= alive_ns);
    CHECK(ended_ns < alive_ns + 100 * kMs);  // its end takes some; counted twice it would add 120
    for (const int fd : shared) close(fd);
  }
}

TEST_CASE("what nobody waits for stays in the sum, too") {
  for (const FindChildren how : kBoth) {
    pid_t child = 0;
    int shared[2];
    REQUIRE(pipe(shared) == 0);
    const Steps process({[&] {
                           signal(SIGCHLD,
                                  SIG_IGN);  // its children vanish without being waited for
                           child = fork();
                           if (child == 0) {
                             burn(80 * kMs);
                             if (write(shared[1], "d", 1) != 1) _exit(1);
                             pause();
                           }
                           char word = 0;
                           if (::read(shared[0], &word, 1) != 1) _exit(1);
                         },
                         [&] {
                           kill(child, SIGKILL);
                           while (kill(child, 0) == 0) usleep(1000);
                         }});
    WatchedProcesses watched(how);
    REQUIRE(watched.watch(process.pid()).is_ok());
    process.step();
    const int64_t alive_ns = cpu_ns(watched);
    process.step();
    CHECK(cpu_ns(watched) >= alive_ns);
    CHECK(cpu_ns(watched) < alive_ns + 70 * kMs);  // counted twice it would add 80
    for (const int fd : shared) close(fd);
  }
}

TEST_CASE("children that lived between two samples count once they were waited for") {
  const Steps process({[] {
    for (int i = 0; i < 5; ++i) run_child([] { burn(20 * kMs); });
  }});
  WatchedProcesses watched;
  REQUIRE(watched.watch(process.pid()).is_ok());
  process.step();
  CHECK(cpu_ns(watched) >= 70 * kMs);
}

TEST_CASE("many children that come and go are neither lost nor counted twice") {
  rusage before{};
  getrusage(RUSAGE_CHILDREN, &before);
  Steps process({[] {
    for (int i = 0; i < 60; ++i) run_child([] { burn(3 * kMs); });
  }});
  WatchedProcesses watched;
  REQUIRE(watched.watch(process.pid()).is_ok());
  std::vector<int64_t> seen;
  std::thread stepping([&] { process.step(); });
  const int64_t until_ns = board_ns() + 400 * kMs;
  while (board_ns() < until_ns) seen.push_back(cpu_ns(watched));
  stepping.join();
  seen.push_back(cpu_ns(watched));
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  process.let_go();
  watched.unwatch(process.pid());
  const int64_t counted_ns = cpu_ns(watched);
  process.reap();
  rusage after{};
  getrusage(RUSAGE_CHILDREN, &after);
  const auto total_ns = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000'000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
  };
  const int64_t true_ns = total_ns(after) - total_ns(before);
  CHECK(counted_ns > true_ns - 40 * kMs);
  CHECK(counted_ns < true_ns + 40 * kMs);
}

TEST_CASE("a process that has ended is counted to its end, and not watched any more stays") {
  Steps process({[] {}, [] { burn(50 * kMs); }});
  process.step();
  WatchedProcesses watched;
  REQUIRE(watched.watch(process.pid()).is_ok());
  process.step();
  process.let_go();
  watched.unwatch(process.pid());
  const int64_t used_ns = cpu_ns(watched);
  CHECK(used_ns >= 49 * kMs);
  process.reap();
  CHECK(cpu_ns(watched) == used_ns);
  CHECK(watched.read(++forks).rss_bytes == 0);
}

TEST_CASE("the probe's own processor time counts while it is told to") {
  WatchedProcesses watched;
  burn(20 * kMs);
  CHECK(cpu_ns(watched) == 0);
  watched.count_self(true);
  burn(30 * kMs);
  CHECK(cpu_ns(watched) >= 30 * kMs);
  watched.count_self(false);
  const int64_t used_ns = cpu_ns(watched);
  burn(20 * kMs);
  CHECK(cpu_ns(watched) == used_ns);
}

TEST_CASE("bytes that a process writes are seen, and a process that is not there is told") {
  WatchedProcesses watched;
  REQUIRE(watched.watch(getpid()).is_ok());
  CHECK_FALSE(watched.bytes_denied());
  const Status status = watched.watch(std::numeric_limits<pid_t>::max());
  CHECK(status.code() == StatusCode::kBadInput);
  CHECK(status.message().find("there is no process") != std::string::npos);
}

TEST_CASE("bytes of another user's process are told to be unseen, its processor time is seen") {
  if (geteuid() != 0) {
    WARN_MESSAGE(false, "not run: becoming another user needs root");
    return;
  }
  const Steps process({[] { burn(30 * kMs); }});
  const pid_t other = fork();
  if (other == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    WatchedProcesses watched;
    const bool is_watched = watched.watch(process.pid()).is_ok();
    process.step();
    const bool seen = cpu_ns(watched) >= 29 * kMs;
    _exit(is_watched && seen && watched.bytes_denied() ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the parent's number is found after a name that holds anything") {
  CHECK(parent_in_stat("12 (a) R 5 (b) S 34 12 12 0 -1") == 34);
  CHECK(parent_in_stat("") == 0);
}

}  // namespace
}  // namespace opjoule
