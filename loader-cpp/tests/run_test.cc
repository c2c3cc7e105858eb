// `probe run` and `probe mark` as programs.
#include <sys/stat.h>

#include "probe/running_commands.h"
#include "tests/probe_process.h"

namespace opjoule {
namespace {

Arguments run(const Folder& folder, const std::string& tag, Arguments more, Arguments command) {
  Arguments all{"run", "--dir", folder / "", "--tag", tag};
  all.insert(all.end(), more.begin(), more.end());
  all.push_back("--");
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

Arguments shell(const std::string& script) { return {"sh", "-c", script}; }

TEST_CASE("a command's output and exit status pass through, and its folder has pid and status") {
  const Folder folder;
  Probe probe(run(folder, "job", {}, shell("echo $PPID $$ ${OPJOULE_MARKS-none}; exit 3")));
  const std::string line = probe.line().value_or("");
  CHECK(probe.wait() == 3);
  const std::string pid = line.substr(line.find(' ') + 1, line.rfind(' ') - line.find(' ') - 1);
  CHECK(line.ends_with(" none"));
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  CHECK(folder.lines("job/pid") == std::vector<std::string>{pid + " " + boot_id});
  CHECK(folder.lines("job/status") == std::vector<std::string>{"3"});
}

TEST_CASE("a command killed by a signal, and one that is not there, have a shell's status") {
  const Folder folder;
  CHECK(Probe(run(folder, "a", {}, shell("kill -SEGV $$"))).wait() == 128 + SIGSEGV);
  Probe missing(run(folder, "b", {}, {"/no/such/command"}));
  CHECK(missing.line()->find("/no/such/command: cannot be started") != std::string::npos);
  CHECK(missing.wait() == 127);
  CHECK(Probe(run(folder, "c", {}, {"/dev/null"})).wait() == 126);
}

TEST_CASE("a command has no stdin, a group of its own, default signals and the pinned processor") {
  const Folder folder;
  Probe probe(run(folder, "job", {"--pin", "0"},
                  shell("cat; ps -o pgid= -p $$ | tr -d ' '; echo $$; grep -E "
                        "'^(SigIgn|SigBlk|Cpus_allowed_list)' /proc/self/status")));
  const std::string group = probe.line().value_or("");
  CHECK(probe.line() == group);
  CHECK(probe.line() == "SigBlk:\t0000000000000000");
  CHECK(probe.line() == "SigIgn:\t0000000000000000");
  CHECK(probe.line() == "Cpus_allowed_list:\t0");
  CHECK(probe.wait() == 0);
}

TEST_CASE("a command gets its words as they are") {
  const Folder folder;
  const ServingProbe server(folder / "");
  const std::vector<std::string> words{"[1, 2]", "--", "--dir", "", "{\"a\": [3]}"};
  std::vector<std::string> command{"sh", "-c", "printf '<%s>' \"$@\"; echo", "sh"};
  command.insert(command.end(), words.begin(), words.end());
  Probe probe(run(folder, "job", {}, command));
  CHECK(probe.line() == "<[1, 2]><--><--dir><><{\"a\": [3]}>");
  CHECK(probe.wait() == 0);
  Probe none({"run", "--dir", folder / "", "--tag", "none"});
  CHECK(none.wait() == 2);
}

TEST_CASE("a command's phase is marked from before its start to after its end") {
  const Folder folder;
  ServingProbe probe(folder / "");
  probe.ask("files all");
  CHECK(Probe(run(folder, "job", {"--phase", "work"}, shell("sleep 0.05"))).wait() == 0);
  const auto is_mark = [](const Json& json) { return json.contains("mark"); };
  const Json begin = probe.until(is_mark);
  const Json end = probe.until(is_mark);
  CHECK(begin["mark"] == "phase-begin");
  CHECK(end["mark"] == "phase-end");
  CHECK(begin["name"] == "work");
  CHECK(end["board_ns"].get<int64_t>() - begin["board_ns"].get<int64_t>() >= 50'000'000);
}

TEST_CASE("the socket of the marks may have a longer path than the kernel takes for one") {
  const Folder folder;
  const std::string deep = folder / std::string(150, 'x');
  ServingProbe probe(deep);
  probe.ask("files all");
  CHECK(Probe({"mark", "--marks", deep + "/marks", "phase", "begin", "far"}).wait() == 0);
  const auto is_mark = [](const Json& json) { return json.contains("mark"); };
  CHECK(probe.until(is_mark)["name"] == "far");
}

TEST_CASE("wrong options are refused before anything is started") {
  const Folder folder;
  const std::pair<Arguments, const char*> wrong[] = {
      {run(folder, "a/b", {}, {"true"}), "--tag a/b"},
      {run(folder, "..", {}, {"true"}), "--tag .."},
      {run(folder, "a", {"--pin", "0-"}, {"true"}), "--pin 0-"},
      {run(folder, "a", {"--pin", "1000"}, {"true"}), "--pin 1000"},
      {run(folder, "a", {"--serve", "/nowhere/marks"}, {"true"}), "/nowhere/marks"},
      {{"run", "--dir", folder / "", "--tag", "a"}, "command"},
      {{"serve"}, "--dir"},
      {{"mark"}, "give one mark"},
      {{"mark", "phase", "begn", "x"}, "phase needs begin or end"},
      {{"serve", "--dir", folder / "", "--sync", "gpio"}, "--sync gpio: expected"},
      {{}, "subcommand"},
  };
  for (const auto& [arguments, expected] : wrong) {
    Probe probe(arguments);
    const std::string line = probe.line().value_or("");
    CHECK_MESSAGE(line.find(expected) != std::string::npos, line);
    CHECK(line.starts_with("probe: "));
    CHECK(probe.exit_code() == 2);
  }
}

TEST_CASE("a tag is used once") {
  const Folder folder;
  CHECK(Probe(run(folder, "a", {}, {"true"})).wait() == 0);
  Probe second(run(folder, "a", {}, {"true"}));
  CHECK(second.line()->find("has run in") != std::string::npos);
  CHECK(second.wait() == 2);
}

constexpr const char* kEndsInOrder =
    "trap 'echo stopped; exit 7' TERM; echo ready; while :; do sleep 0.01; done";

TEST_CASE("the end of its stdin, silence and SIGTERM ask the command to stop; others do not") {
  const Folder folder;
  {
    Probe probe(run(folder, "end", {}, shell(kEndsInOrder)));
    CHECK(probe.line() == "ready");
    for (const int number : {SIGINT, SIGHUP, SIGPIPE}) probe.send_signal(number);
    probe.write(".");
    probe.end_input();
    CHECK(probe.line() == "stopped");
    CHECK(probe.wait() == 7);
  }
  {
    Probe probe(run(folder, "silence", {"--silence-s", "0.05"}, shell(kEndsInOrder)));
    const int code = probe.wait();
    CHECK((code == 7 || code == 128 + SIGTERM));  // before the shell had set its trap
  }
  {
    Probe probe(run(folder, "term", {}, shell(kEndsInOrder)));
    CHECK(probe.line() == "ready");
    probe.send_signal(SIGTERM);
    CHECK(probe.wait() == 7);
  }
}

TEST_CASE("stdin may be ended from the start where silence is no matter") {
  const Folder folder;
  Probe probe(run(folder, "a", {"--silence-s", "0"}, shell("sleep 0.05; exit 4")));
  CHECK(probe.exit_code() == 4);
}

TEST_CASE("a command that does not stop is killed with its group") {
  const Folder folder;
  Probe probe(
      run(folder, "a", {"--kill-after-s", "0.05"}, shell("trap '' TERM; echo ready; sleep 1000")));
  CHECK(probe.line() == "ready");
  CHECK(probe.exit_code() == 128 + SIGKILL);
}

TEST_CASE("what a command that was told to end leaves behind in its group is killed") {
  const Folder folder;
  Probe probe(run(folder, "job", {}, shell("trap 'exit 9' TERM; sleep 1000 & echo ready; wait")));
  CHECK(probe.line() == "ready");
  probe.end_input();
  CHECK(probe.line() == std::nullopt);  // nobody holds its output
  CHECK(probe.wait() == 9);
}

// Whether a process that was killed is gone, or a zombie; one that is neither is ended here.
bool was_killed(const std::string& pid) {
  for (int tries = 0; tries < 6000; ++tries) {
    std::ifstream stat("/proc/" + pid + "/stat");
    const std::string text(std::istreambuf_iterator<char>(stat), {});
    if (text.empty() || text.find(") Z ") != std::string::npos) return true;
    usleep(10'000);
  }
  ::kill(std::stoi(pid), SIGKILL);
  return false;
}

TEST_CASE("what a command has left behind ends with it, and does not keep its output open") {
  const Folder folder;
  Probe probe(run(folder, "a", {}, shell("sleep 1000 & echo $!; exit 5")));
  const std::string pid = probe.line().value_or("");
  CHECK(probe.wait() == 5);
  CHECK(was_killed(pid));
  CHECK_FALSE(probe.line());
}

TEST_CASE("what has left the command's process group ends with its control group") {
  const Folder folder;
  Probe probe(
      run(folder, "a", {}, shell("cat /proc/self/cgroup; setsid sleep 1000 & echo $!; exit 5")));
  bool grouped = false;
  std::string last;
  for (auto line = probe.line(); line && !line->empty(); line = probe.line()) {
    grouped = grouped || line->find("/opjoule-") != std::string::npos;
    last = *line;
    if (last.find(':') == std::string::npos) break;  // the process's number
  }
  if (!grouped) {  // what is left behind keeps the output open
    ::kill(std::stoi(last), SIGKILL);
    WARN_MESSAGE(false, "not run: no control group can be made here");
  }
  CHECK(probe.wait() == 5);
  if (grouped) CHECK(was_killed(last));
}

TEST_CASE("a command that serve has to end is killed with its group, no other process is") {
  int out[2];
  REQUIRE(pipe(out) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    signal(SIGTERM, SIG_IGN);
    if (write(out[1], "r", 1) != 1) _exit(1);
    while (true) pause();
  }
  char ready = 0;
  REQUIRE(read(out[0], &ready, 1) == 1);
  RunningCommands running;
  running.add(pid);
  running.add(getpid());  // leads no group that may be killed, and is taken off again
  running.remove(getpid());
  running.stop(0.02);
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  CHECK(WTERMSIG(status) == SIGKILL);
  close(out[0]);
  close(out[1]);
}

TEST_CASE("a command is counted to its end, marks from within it, and ends with serve") {
  const Folder folder;
  ServingProbe serve(folder / "");
  serve.ask("files a");
  {
    Probe probe(run(folder, "job", {},
                    shell("\"$OPJOULE_PROBE\" mark phase begin load && "
                          "printf 'operation read 1 2 3\\nevent gc 1 2\\n' | "
                          "\"$OPJOULE_PROBE\" mark --file - && "
                          "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; "
                          "\"$OPJOULE_PROBE\" mark phase end load")));
    CHECK(probe.wait() == 0);
  }
  serve.ask("files b");
  std::vector<std::string> names;
  for (const std::string& line : folder.lines("a.events.jsonl"))
    names.push_back(Json::parse(line)["event"]);
  CHECK(names == std::vector<std::string>{"phase-begin", "operation", "gc", "phase-end"});
  const std::string row = folder.lines("a.system.csv").back();
  CHECK(std::stod(row.substr(row.find(',', row.find(',') + 1) + 1)) > 0.005);

  Probe stopped(run(folder, "long", {}, shell(kEndsInOrder)));
  CHECK(stopped.line() == "ready");
  CHECK(serve.exit_code() == 0);
  CHECK(stopped.line() == "stopped");
}

TEST_CASE("a mark without a probe does nothing, one to a probe that has gone is told") {
  Probe nowhere({"mark", "phase", "begin", "load"});
  CHECK(nowhere.exit_code() == 0);
  Probe gone({"mark", "--marks", "/nowhere/marks", "phase", "begin", "load"});
  CHECK(gone.line()->find("no probe serves it") != std::string::npos);
  CHECK(gone.exit_code() == 2);
}

TEST_CASE("the probe says its version, and lists the board's GPIO lines") {
  Probe version({"--version"});
  CHECK(version.line()->starts_with("probe "));
  Probe gpio({"gpio"});
  CHECK(gpio.exit_code() == 0);
}

TEST_CASE("the reference page lists every option") {
  std::ifstream in(OPJOULE_SOURCE_ROOT "/docs/reference/probe.md");
  REQUIRE(in);
  const std::string page(std::istreambuf_iterator<char>(in), {});
  for (const std::string command : {"serve", "run", "mark", "gpio"}) {
    Probe help({command, "--help"});
    for (const std::string& line : help.lines()) {
      const size_t dashes = line.find("--");
      if (dashes == std::string::npos || line.find_first_not_of(" ,-h") < dashes) continue;
      const std::string option = line.substr(dashes, line.find_first_of(" :[,", dashes) - dashes);
      CHECK_MESSAGE((option == "--help" || page.find(option) != std::string::npos), option);
    }
  }
}

}  // namespace
}  // namespace opjoule
