// `probe serve` as a program, with real files, sockets and FIFOs.
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/probe_process.h"

namespace opjoule {
namespace {

constexpr const char* kHeader =
    "board_ns,cpu_busy_s,process_cpu_s,process_read_bytes,process_written_bytes,device_read_bytes,"
    "device_written_bytes,dirty_bytes,rss_bytes,rss_anon_bytes";

double column(const std::string& row, int number) {
  size_t at = 0;
  for (int i = 0; i < number; ++i) at = row.find(',', at) + 1;
  return std::stod(row.substr(at));
}

std::vector<Json> events(const Folder& folder, const std::string& name) {
  std::vector<Json> all;
  for (const std::string& line : folder.lines(name + ".events.jsonl"))
    all.push_back(Json::parse(line));
  return all;
}

TEST_CASE("the first line says what there is; requests are answered; the end of stdin ends it") {
  const Folder folder;
  ServingProbe probe(folder / "new", {"--path", folder / ""});
  CHECK(probe.first["board_ns"].get<int64_t>() > 0);
  CHECK(probe.first["marks"] == folder / "new" + "/marks");
  CHECK(probe.first["level"].is_null());
  struct stat about{};
  REQUIRE(stat((folder / "new" + "/marks").c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  const Json clock = probe.ask("clock");
  CHECK(clock["received_ns"].get<int64_t>() > probe.first["board_ns"].get<int64_t>());
  CHECK(clock["sent_ns"].get<int64_t>() >= clock["received_ns"].get<int64_t>());
  CHECK(probe.ask("pending")["bytes"].get<int64_t>() >= 0);
  CHECK(probe.ask("steering")["adjtimex"].contains("frequency_ppm"));
  const Json drained = probe.ask("drain 3600");
  CHECK(drained["written_back"] == true);
  CHECK(drained["end_ns"].get<int64_t>() >= drained["start_ns"].get<int64_t>());
  CHECK(probe.exit_code() == 0);
  CHECK(stat((folder / "new" + "/marks").c_str(), &about) != 0);
}

TEST_CASE("a host that falls silent ends it, too") {
  const Folder folder;
  ServingProbe probe(folder / "", {"--silence-s", "0.05"});
  CHECK(probe.wait() == 0);
}

TEST_CASE("what is no request is answered with why, and it goes on") {
  const Folder folder;
  ServingProbe probe(folder / "");
  for (const std::string line :
       {"clocks", "files", "files a/b", "files ..", "files a b", "signature 2 100",
        "signature 10 0", "signature 10 x", "drain", "drain soon", "drain 5", "pending 1"}) {
    probe.write(line + "\n");
    const Json error = probe.answer("error");
    CHECK(error["line"] == line);
    CHECK(!error["error"].get<std::string>().empty());
  }
  probe.write("\n\n");  // beats, which nothing answers
  probe.ask("clock");
  CHECK(probe.exit_code() == 0);
}

TEST_CASE("the rest of a request that is too long is no request of its own") {
  const Folder folder;
  ServingProbe probe(folder / "");
  probe.write(std::string(200'000, 'x') + "\npending\n");
  CHECK(probe.answer("error")["error"] == "the line has more than 131072 bytes");
  probe.answer("pending");
  size_t errors = 0;
  for (const Json& line : probe.seen) errors += line.value("answer", "") == "error" ? 1 : 0;
  CHECK(errors == 1);
  CHECK(probe.exit_code() == 0);
}

TEST_CASE("a board that is its watched processes has their counters and no others") {
  const Folder folder;
  ServingProbe probe(folder / "", {"--scope", "processes", "--period-ms", "10"});
  probe.ask("files all");
  probe.ask("files rest");
  const std::vector<std::string> rows = folder.lines("all.system.csv");
  REQUIRE(rows.size() > 1);
  const std::string& row = rows[1];
  // cpu_busy_s, the process's, its bytes, the device's, dirty: nothing is watched
  CHECK_MESSAGE(row.substr(row.find(',')).starts_with(",0.00,0.000000,0,0,0,0,0,"), row);
}

TEST_CASE("a simulated medium's counters and dirty pages stand for the kernel's") {
  const Folder folder;
  folder.write("stat", "1 0 8 0 2 0 4096 0 0 0 0 0 0 0 0 0 0\n");
  folder.write("meminfo", "Dirty: 12 kB\nWriteback: 8 kB\n");
  ServingProbe probe(folder / "served",
                     {"--scope", "processes", "--period-ms", "10", "--kernel-files", folder / ""});
  CHECK(probe.ask("pending")["bytes"] == 20 * 1024);
  probe.ask("files all");
  folder.write("stat", "1 0 8 0 2 0 8192 0 0 0 0 0 0 0 0 0 0\n");
  folder.write("meminfo", "Dirty: 0 kB\nWriteback: 4 kB\n");
  CHECK(probe.ask("pending")["bytes"] == 4 * 1024);
  probe.ask("files rest");
  const std::vector<std::string> rows = folder.lines("served/all.system.csv");
  REQUIRE(rows.size() > 2);
  const auto counted = [](const std::string& row) { return row.substr(row.find(',')); };
  CHECK_MESSAGE(counted(rows[1]).starts_with(",0.00,0.000000,0,0,4096,2097152,20480,"), rows[1]);
  CHECK_MESSAGE(counted(rows.back()).starts_with(",0.00,0.000000,0,0,4096,4194304,4096,"),
                rows.back());
  Probe other({"serve", "--dir", folder / "other", "--kernel-files", folder / "nowhere"});
  CHECK(other.line().value_or("").find("nowhere/stat") != std::string::npos);
  CHECK(other.exit_code() != 0);
}

TEST_CASE("a second probe in the same folder is refused; one after a killed one is not") {
  const Folder folder;
  {
    ServingProbe probe(folder / "");
    Probe second({"serve", "--dir", folder / ""});
    CHECK(second.line() == "probe: --dir " + folder / "" + ": another probe serves it");
    CHECK(second.exit_code() == 2);
    probe.send_signal(SIGKILL);
    CHECK(probe.wait() == -SIGKILL);
  }
  ServingProbe third(folder / "");
  Workload(third.first["marks"]).tell("phase begin load\n");
  third.until([](const Json& json) { return json.contains("mark"); });
}

TEST_CASE("files change hands with one sample in both, and none is overwritten") {
  const Folder folder;
  ServingProbe probe(folder / "", {"--period-ms", "5"});
  CHECK(probe.ask("files one")["name"] == "one");
  probe.ask("files two");
  const std::vector<std::string> one = folder.lines("one.system.csv");
  probe.write("files one\n");
  CHECK(probe.answer("error")["error"].get<std::string>().find("is there already") !=
        std::string::npos);
  CHECK(probe.exit_code() == 0);
  CHECK(folder.lines("one.system.csv") == one);
  const std::vector<std::string> two = folder.lines("two.system.csv");
  REQUIRE(one.size() >= 3);
  REQUIRE(two.size() >= 3);
  CHECK(one[0] == kHeader);
  CHECK(two[0] == kHeader);
  CHECK(one.back() == two[1]);
  for (const auto* rows : {&one, &two})
    for (const std::string& row : *rows) CHECK(std::count(row.begin(), row.end(), ',') == 9);
}

TEST_CASE("the clock is answered while the signature is played, whose changes are events") {
  const Folder folder;
  ServingProbe probe(folder / "");
  probe.ask("files a");
  probe.write("signature 0110100 20\nsignature 10 20\nclock\nclock\npending\n");
  const Json played = probe.answer("signature");
  CHECK(played["bits"] == "0110100");
  std::vector<std::string> order;
  for (const Json& line : probe.seen)
    if (line.contains("answer")) order.push_back(line["answer"]);
  CHECK(std::count(order.begin(), order.end(), "clock") == 2);
  CHECK(std::count(order.begin(), order.end(), "pending") == 1);
  CHECK(std::count(order.begin(), order.end(), "error") == 1);  // one signature at a time
  CHECK(order.back() == "signature");
  probe.ask("files b");
  std::vector<int> levels;
  for (const Json& event : events(folder, "a")) {
    CHECK(event["event"] == "load-change");
    CHECK(event["board_ns"].get<int64_t>() >= played["start_ns"].get<int64_t>());
    CHECK(event["board_ns"].get<int64_t>() <= played["end_ns"].get<int64_t>());
    levels.push_back(event["level"]);
  }
  CHECK(levels == std::vector<int>{1, 0, 1, 0});
  CHECK(column(folder.lines("b.system.csv")[1], 2) > 0);  // it counts as watched
}

TEST_CASE("every edge of the sync line is an event, those before the first files too") {
  const Folder folder;
  for (const int found : {0, 1}) {
    const std::string line = folder / "line" + std::to_string(found);
    if (found == 1) folder.write("line1", "5 1\n");
    const std::string name = "f" + std::to_string(found);
    ServingProbe probe(folder / "", {"--sync", "virtual:" + line});
    CHECK(probe.first["level"] == found);
    probe.ask("files " + name);
    CHECK(probe.exit_code() == 0);
    std::vector<std::string> edges = folder.lines("line" + std::to_string(found));
    if (found == 1) edges.erase(edges.begin());
    const std::vector<Json> logged = events(folder, name);
    REQUIRE(!edges.empty());
    REQUIRE(logged.size() == edges.size());
    CHECK(logged[0]["level"] == 1 - found);
    for (size_t i = 0; i < edges.size(); ++i)
      CHECK(edges[i] == std::to_string(logged[i]["board_ns"].get<int64_t>()) + " " +
                            std::to_string(logged[i]["level"].get<int>()));
  }
}

TEST_CASE("the live feed has samples and edges, and may lose its reader") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "live").c_str(), 0600) == 0);
  const int reader = open((folder / "live").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ServingProbe probe(folder / "", {"--live", folder / "live", "--live-period-ms", "1", "--sync",
                                   "virtual:" + folder / "line"});
  fcntl(reader, F_SETFL, 0);
  FILE* lines = fdopen(reader, "r");
  char text[512];
  REQUIRE(fgets(text, sizeof text, lines) != nullptr);
  CHECK(std::string(text) == std::string(kHeader) + "\n");
  size_t rows = 0;
  std::string edge;
  while (rows < 3 || edge.empty()) {
    REQUIRE(fgets(text, sizeof text, lines) != nullptr);
    const std::string line = text;
    if (line.starts_with("e "))
      edge = line.substr(2);
    else
      rows += static_cast<size_t>(std::count(line.begin(), line.end(), ',') == 9);
  }
  CHECK(edge == folder.lines("line")[0] + "\n");
  fclose(lines);
  for (int i = 0; i < 50; ++i) probe.ask("clock");
  probe.ask("pending");
  CHECK(probe.exit_code() == 0);
}

TEST_CASE("marks go to stdout and into the events file, and are counted") {
  const Folder folder;
  ServingProbe probe(folder / "");
  const Workload workload(probe.first["marks"]);
  probe.ask("files a");
  workload.tell("phase begin load\noperation insert 5 10 100 ok\noperation read 7 3\n");
  workload.tell("event gc 8 9 old\nphase end load 11\n");
  CHECK(workload.sync() == "ok 5");
  const Json end =
      probe.until([](const Json& json) { return json.value("mark", "") == "phase-end"; });
  CHECK(end["name"] == "load");
  CHECK(end["board_ns"] == 11);
  CHECK(probe.exit_code() == 0);
  const std::vector<Json> logged = events(folder, "a");
  REQUIRE(logged.size() == 5);
  CHECK(logged[0]["event"] == "phase-begin");
  CHECK(logged[0]["detail"] == "load");
  CHECK(logged[0]["board_ns"].get<int64_t>() > probe.first["board_ns"].get<int64_t>());
  CHECK(logged[1] ==
        Json::parse(
            R"({"event":"operation","board_ns":5,"end_board_ns":15,"detail":"insert 100 ok"})"));
  CHECK(logged[2]["detail"] == "read 0 ok");
  CHECK(logged[3] == Json::parse(R"({"event":"gc","board_ns":8,"end_board_ns":9,"detail":"old"})"));
  CHECK(logged[4] == Json::parse(R"({"event":"phase-end","board_ns":11,"detail":"load"})"));
}

TEST_CASE("bad marks are told once a kind, counted, and the rest is taken") {
  const Folder folder;
  ServingProbe probe(folder / "");
  probe.ask("files a");
  {
    const Workload workload(probe.first["marks"]);
    workload.tell("phase begn load\nphase begn run\n" + std::string(5'000, 'x') + "\n" +
                  std::string(200'000, 'y') + "\nphase begin load\nwatch 2000000000\n");
    CHECK(workload.sync() == "ok 1");
    workload.tell("phase end load");  // its end never comes
  }
  std::vector<std::string> faults;
  for (const Json& line : probe.rest())
    if (line.contains("fault")) faults.push_back(line["fault"]);
  const auto told = [&](const std::string& part) {
    return std::count_if(faults.begin(), faults.end(), [&](const std::string& fault) {
      return fault.find(part) != std::string::npos;
    });
  };
  CHECK(told("mark 'phase begn load': phase needs begin or end") == 1);
  CHECK(told("mark 'phase begn run'") == 0);
  CHECK(told("2 lines were refused in all: phase needs begin or end") == 1);
  CHECK(told("x': the line has more than 4096 bytes") == 1);
  CHECK(told("2 lines were refused in all: the line has more") == 1);
  CHECK(told("mark 'phase end load': the line has no end") == 1);
  CHECK(told("there is no process 2000000000") == 1);
}

TEST_CASE("a phase from before the first files is on stdout, and its absence from the files told") {
  const Folder folder;
  ServingProbe probe(folder / "");
  const Workload workload(probe.first["marks"]);
  workload.tell("phase begin load 5\n");
  CHECK(workload.sync() == "ok 0");
  const auto is_mark = [](const Json& json) { return json.contains("mark"); };
  CHECK(probe.until(is_mark) ==
        Json::parse(R"({"mark":"phase-begin","name":"load","board_ns":5})"));
  const Json fault = probe.until([](const Json& json) { return json.contains("fault"); });
  CHECK(fault["fault"].get<std::string>().find("no files were asked for yet") != std::string::npos);
}

TEST_CASE("no mark is lost while files change hands") {
  const Folder folder;
  constexpr int kMarks = 20'000;
  ServingProbe probe(folder / "");
  probe.ask("files n0");
  std::vector<std::thread> workloads;
  for (int number = 0; number < 2; ++number)
    workloads.emplace_back([&, number] {
      const Workload workload(probe.first["marks"]);
      std::string lines;
      for (int i = 0; i < kMarks; ++i)
        lines += "operation w" + std::to_string(number) + " " + std::to_string(i) + " 1\n";
      workload.tell(lines);
      CHECK(workload.sync() == "ok " + std::to_string(kMarks));
    });
  for (int i = 1; i < 6; ++i) probe.ask("files n" + std::to_string(i));
  for (std::thread& workload : workloads) workload.join();
  CHECK(probe.exit_code() == 0);
  std::set<std::string> found;
  for (int i = 0; i < 6; ++i)
    for (const std::string& line : folder.lines("n" + std::to_string(i) + ".events.jsonl"))
      found.insert(line);
  CHECK(found.size() == 2 * kMarks);
}

TEST_CASE("a full disk is told once, what stands before it is whole lines, and it goes on") {
  const Folder folder;
  const std::string disk = folder / "disk";
  mkdir(disk.c_str(), 0700);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=256k") != 0) {
    WARN_MESSAGE(false, "not run: mounting a tmpfs needs root");
    return;
  }
  {
    ServingProbe probe(disk, {"--period-ms", "1"});
    const Workload workload(probe.first["marks"]);
    probe.ask("files a");
    std::string lines;
    for (int i = 0; i < 20'000; ++i) lines += "operation read " + std::to_string(i) + " 1\n";
    workload.tell(lines);
    CHECK(workload.sync() == "ok 20000");
    bool events_told = false;
    bool system_told = false;  // comes first if the marks arrive slowly
    probe.until([&](const Json& json) {
      const std::string fault = json.value("fault", "");
      events_told |= fault.find("events file") != std::string::npos;
      system_told |= fault.find("system file") != std::string::npos;
      return events_told && system_told;
    });
    probe.write("files b\n");
    CHECK(probe.answer("error")["error"].get<std::string>().find("o space") != std::string::npos);
    probe.ask("clock");
    CHECK(probe.exit_code() == 0);
  }
  for (const char* name : {"/a.events.jsonl", "/a.system.csv"}) {
    std::ifstream in(disk + name);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    CHECK(!text.empty());
    CHECK(text.back() == '\n');
  }
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_CASE("a sync line that fails is told once, and it goes on") {
  const Folder folder;
  ServingProbe probe(folder / "", {"--sync", "virtual:/dev/full"});
  const Json fault = probe.until([](const Json& json) { return json.contains("fault"); });
  CHECK(fault["fault"].get<std::string>().find("sync line /dev/full") != std::string::npos);
  probe.ask("clock");
  CHECK(probe.exit_code() == 0);
}

}  // namespace
}  // namespace opjoule
