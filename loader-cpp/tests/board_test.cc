#include <doctest/doctest.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "board/board_counters.h"
#include "board/clock.h"
#include "board/event_file.h"
#include "board/output_file.h"
#include "board/proc_file.h"
#include "board/settle.h"
#include "board/sync_line.h"
#include "board/thread_clocks.h"

namespace opjoule {
namespace {

class Scratch {
 public:
  Scratch() { std::filesystem::create_directory(folder_); }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ / name; }
  [[nodiscard]] std::vector<std::string> lines(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("opjoule-board-" + std::to_string(getpid()));
};

TEST_CASE("events become JSON lines, hostile details included") {
  const Scratch scratch;
  std::unique_ptr<EventFile> events;
  REQUIRE(EventFile::create(scratch.file("events"), &events).is_ok());
  events->add(EventKind::kCompaction, 10, 20, "level \"1\"\n\\");
  events->sync_edge(30, 4.2, 1);
  REQUIRE(events->close().is_ok());
  const auto lines = scratch.lines("events");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        R"({"event":"compaction","board_ns":10,"end_board_ns":20,"detail":"level \"1\" \\"})");
  CHECK(lines[1] == R"({"event":"sync-edge","board_ns":30,"u_ns":5,"level":1})");
}

TEST_CASE("what lasts is announced before it ends, once") {
  const Scratch scratch;
  std::unique_ptr<EventFile> events;
  REQUIRE(EventFile::create(scratch.file("events"), &events).is_ok());
  events->begin(EventKind::kSync, 10);
  while (scratch.lines("events").empty()) std::this_thread::yield();
  events->add(EventKind::kSync, 10, 20, "");
  events->begin(EventKind::kCompaction, 30);  // and does not end
  REQUIRE(events->close().is_ok());
  const auto lines = scratch.lines("events");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0] == R"({"event":"begin","board_ns":10,"detail":"sync"})");
  CHECK(lines[1] == R"({"event":"sync","board_ns":10,"end_board_ns":20,"detail":""})");
  CHECK(lines[2] == R"({"event":"begin","board_ns":30,"detail":"compaction"})");
}

TEST_CASE("a FIFO that nobody reads is told, not waited for without end") {
  const Scratch scratch;
  REQUIRE(mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  int fd = -1;
  const Status status = open_output("system file", scratch.file("fifo"), O_TRUNC, &fd, 0.02);
  CHECK(status.code() == StatusCode::kIo);
  CHECK(status.message() == "system file " + scratch.file("fifo") +
                                ": a FIFO that nobody has opened for reading within 0.02 s");
}

TEST_CASE("a FIFO's reader may come later than its writer, which then blocks as ever") {
  const Scratch scratch;
  REQUIRE(mkfifo(scratch.file("fifo").c_str(), 0600) == 0);
  int reader = -1;
  std::thread opener([&] { reader = open(scratch.file("fifo").c_str(), O_RDONLY); });
  int fd = -1;
  CHECK(open_output("system file", scratch.file("fifo"), O_TRUNC, &fd, 3600).is_ok());
  opener.join();
  CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0);
  close(fd);
  close(reader);
}

TEST_CASE("a full queue drops and counts, it does not grow") {
  const Scratch scratch;
  std::unique_ptr<EventFile> events;
  REQUIRE(EventFile::create(scratch.file("events"), &events).is_ok());
  for (int i = 0; i < 100'000; ++i) events->add(EventKind::kFlush, i, i, std::string(200, 'x'));
  REQUIRE(events->close().is_ok());
  CHECK(events->dropped() + scratch.lines("events").size() == 100'000);
  CHECK(events->dropped() > 0);
}

TEST_CASE("loaders of one seed toggle at other times, half a second to one and a half apart") {
  ToggleSchedule first(7, 1'000'000'000'000);
  ToggleSchedule second(7, 1'060'000'000'000);
  int alike = 0;
  for (int i = 0; i < 1000; ++i) {
    const int64_t pause_us = first.next().count();
    CHECK(pause_us >= 500'000);
    CHECK(pause_us <= 1'500'000);
    if (std::abs(second.next().count() - pause_us) < 500) ++alike;
  }
  CHECK(alike < 10);  // one in a thousand is by accident
}

TEST_CASE("a virtual line writes each edge with its time, and the events file has the same edges") {
  const Scratch scratch;
  std::unique_ptr<EventFile> events;
  REQUIRE(EventFile::create(scratch.file("events"), &events).is_ok());
  std::unique_ptr<SyncCarrier> carrier;
  REQUIRE(SyncCarrier::open("virtual:" + scratch.file("line"), &carrier).is_ok());
  SyncLine line(
      std::move(carrier),
      [&](const SyncEdge& edge) { events->sync_edge(edge.board_ns, edge.u_ns, edge.level); },
      [](const Status&) {}, 1);
  const int64_t before_ns = board_ns();
  for (int i = 0; i < 3; ++i) line.toggle();
  REQUIRE(line.stop().is_ok());
  REQUIRE(events->close().is_ok());
  CHECK(line.edges() >= 3);  // on a busy computer the line's own thread adds some
  const auto edges = scratch.lines("line");
  REQUIRE(edges.size() == line.edges());
  REQUIRE(scratch.lines("events").size() == edges.size());
  int64_t previous_ns = before_ns;
  for (size_t i = 0; i < edges.size(); ++i) {
    std::istringstream in(edges[i]);
    int64_t at_ns = 0;
    int level = -1;
    in >> at_ns >> level;
    CHECK(level == (i % 2 == 0 ? 1 : 0));
    CHECK(at_ns >= previous_ns);
    previous_ns = at_ns;
    CHECK(scratch.lines("events")[i].find(std::to_string(at_ns)) != std::string::npos);
  }
}

TEST_CASE("a carrier that is not one is named, and so is a chip that is not there") {
  std::unique_ptr<SyncCarrier> carrier;
  for (const char* text :
       {"", "gpio", "gpio:", "gpio:/dev/gpiochip0", "gpio:/dev/gpiochip0:x", "serial:1"}) {
    const Status status = SyncCarrier::open(text, &carrier);
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK(status.message().find("expected gpio:") != std::string::npos);
  }
  CHECK(SyncCarrier::open("gpio:/dev/no-such-chip:17", &carrier)
            .message()
            .find("/dev/no-such-chip") != std::string::npos);
  CHECK(SyncCarrier::open("virtual:/nowhere/line", &carrier).code() == StatusCode::kBadInput);
}

TEST_CASE("the board's counters go on, and its device is found before the folder is made") {
  const Scratch scratch;
  BoardCounterFiles counters(scratch.file("not-made-yet"));
  const BoardCounters before = counters.read();
  volatile double work = 1;
  while (counters.read().cpu_busy_s <= before.cpu_busy_s) work = work * 1.0000001;
  CHECK(counters.read().forks >= before.forks);
  CHECK(before.forks > 0);
  CHECK(pending_write_bytes() % 1024 == 0);
}

// What the processor time of this thread and of `other` is ahead of `clocks` [s]; asking for them
// brings their accounts up to date, so it comes last.
double behind_s(ThreadClocks& clocks, clockid_t other) {
  const double said_s = clocks.process_cpu_s();
  double true_s = 0;
  for (const clockid_t clock : {other, clockid_t{CLOCK_THREAD_CPUTIME_ID}}) {
    timespec used{};
    clock_gettime(clock, &used);
    true_s += static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
  }
  return true_s - said_s;
}

TEST_CASE("processor time of a thread on another processor is seen without waiting for the tick") {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
    }
  });
  clockid_t clock = 0;
  REQUIRE(pthread_getcpuclockid(busy.native_handle(), &clock) == 0);
  ThreadClocks clocks;
  std::vector<double> behind;
  for (int i = 0; i < 200; ++i) {
    // Different waits: the last reading has brought the account up to date.
    sleep_until(board_ns() + 100'000 + (i % 8) * 500'000);
    behind.push_back(behind_s(clocks, clock));
  }
  stop = true;
  busy.join();
  std::sort(behind.begin(), behind.end());
  // Threads that have ended shift all of them alike. A stale account lags by most of the wait: by
  // 1.85 ms in the middle.
  CHECK(behind[100] - behind[0] < 0.0005);
}

TEST_CASE("a device's bytes are those of /proc/diskstats, whatever file on it is named") {
  // The first device whose node can be named by a file on it: the one of the root file system.
  struct stat about{};
  REQUIRE(stat("/", &about) == 0);
  const auto sectors = [&] {
    std::ifstream disks("/proc/diskstats");
    for (std::string line; std::getline(disks, line);) {
      std::istringstream in(line);
      uint64_t number[2], column[7];
      std::string name;
      in >> number[0] >> number[1] >> name;
      for (uint64_t& value : column) in >> value;
      if (number[0] == major(about.st_dev) && number[1] == minor(about.st_dev))
        return std::pair(column[2] * 512, column[6] * 512);
    }
    return std::pair(uint64_t{0}, uint64_t{0});
  };
  BoardCounterFiles counters("/not-made-yet/either");
  const auto before = sectors();
  const BoardCounters now = counters.read();
  const auto after = sectors();
  CHECK(now.device_read_bytes >= before.first);
  CHECK(now.device_read_bytes <= after.first);
  CHECK(now.device_written_bytes >= before.second);
  CHECK(now.device_written_bytes <= after.second);
}

TEST_CASE("numbers are found after their label") {
  CHECK(number_after("Dirty:            12 kB\nWriteback:  7 kB\n", "Writeback:") == 7);
  CHECK(number_after("Dirty: 12", "Missing:") == 0);
  CHECK(number_after("", "Dirty:") == 0);
}

TEST_CASE("a file system is written back, a path that is not there is named") {
  const Scratch scratch;
  bool settled = false;
  CHECK(write_back(scratch.file(""), 3600, &settled).is_ok());
  CHECK(settled);
  CHECK(write_back("/nowhere", 1, &settled).message().find("/nowhere") != std::string::npos);
}

}  // namespace
}  // namespace opjoule
