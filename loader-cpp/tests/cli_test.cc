// The loader as a program: its lines, its files, its exit codes.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "databases/shared/marker.h"
#include "loader/database.h"
#include "tests/in_memory.h"
#include "tests/loader_process.h"
#include "workload/settings.h"

namespace opjoule {
namespace {

// The engines every build has.
std::vector<std::string> common_engines() {
  std::vector<std::string> names;
  for (const char* name : {"leveldb", "sqlite"})
    if (find_engine(name) != nullptr) names.emplace_back(name);
  return names;
}

std::vector<std::string> phases(const std::vector<std::string>& lines) {
  std::vector<std::string> names;
  int64_t previous_ns = 0;
  for (const std::string& line : lines) {
    const Json json = Json::parse(line);
    if (!json.contains("phase")) continue;
    names.push_back(json["phase"]);
    CHECK(json["board_ns"].get<int64_t>() >= previous_ns);
    previous_ns = json["board_ns"];
    CHECK(json.contains("operations"));
  }
  return names;
}

TEST_CASE("a database's size is that of its files once it is closed") {
  const Folder folder{in_memory()};
  for (const char* engine : {"rocksdb", "leveldb", "sqlite"}) {
    if (find_engine(engine) == nullptr) continue;
    const std::string database = folder / engine;
    Loader loader({"load", "--db", engine, "--path", database, "-p", "recordcount=500"});
    const std::vector<std::string> lines = loader.lines();
    REQUIRE_MESSAGE(loader.exit_code() == 0, lines.back());
    int64_t allocated_bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(database)) {
      struct stat file{};
      if (entry.path().filename() == kMarkerName) continue;
      REQUIRE(stat(entry.path().c_str(), &file) == 0);
      allocated_bytes += file.st_blocks * 512;
    }
    CHECK(Json::parse(lines.back())["summary"]["database_bytes"] == allocated_bytes);
  }
}

TEST_CASE("load and run print their phases and a summary, and leave their files") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    const std::string database = folder / engine;
    const Arguments common{"--db",      engine,
                           "--path",    database,
                           "-p",        "recordcount=500",
                           "-p",        "operationcount=1000",
                           "-p",        "readmodifywriteproportion=0.2",
                           "-p",        "dataintegrity=true",
                           "-p",        "settle.limit_s=3600",
                           "--threads", "2",
                           "--op-log",  folder / "log",
                           "--events",  folder / "events",
                           "--seed",    "7"};
    for (const std::string command : {"load", "run"}) {
      Arguments arguments = common;
      arguments.insert(arguments.begin(), command);
      Loader loader(arguments);
      const std::vector<std::string> lines = loader.lines();
      REQUIRE_MESSAGE(loader.exit_code() == 0, lines.back());
      CHECK(phases(lines) == std::vector<std::string>{"open", command + "-start", command + "-end",
                                                      "settle-start", "settle-end", "close",
                                                      "closed"});
      const Json summary = Json::parse(lines.back())["summary"];
      CHECK(summary["operations"] == (command == "load" ? 500 : 1000));
      CHECK(summary["errors"] == 0);
      CHECK(summary["failure"].is_null());
      CHECK(summary["seed"] == 7);
      CHECK(summary["settled"] == true);
      CHECK(summary["workload"]["recordcount"] == "500");
      CHECK(summary["workload"]["fieldcount"] == "10");
      CHECK(summary["duration_s"].get<double>() > 0);
      CHECK(summary["database_bytes"].get<int64_t>() > 0);
      CHECK(summary["by_kind"][command == "load" ? "insert" : "read"]["latency_s"]["p99"]
                .get<double>() > 0);
      CHECK(std::filesystem::file_size(folder / "log") > 32);
      std::vector<std::string> syncs;
      for (const std::string& line : folder.lines("events"))
        if (const Json event = Json::parse(line); event["detail"] == "syncfs")
          syncs.push_back(event["event"]);
      CHECK(syncs == std::vector<std::string>{"sync"});
    }
  }
}

TEST_CASE("what opening the database begins ends before the run, also with settle=none") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    Arguments arguments{"load",
                        "--db",
                        engine,
                        "--path",
                        folder / engine,
                        "--events",
                        folder / "events",
                        "-p",
                        "recordcount=3000",
                        "-p",
                        "operationcount=100",
                        "-p",
                        "updateproportion=0",
                        "-p",
                        "settle=none",
                        "-p",
                        "leveldb.write_buffer_bytes=65536",
                        "-p",
                        "rocksdb.write_buffer_bytes=65536"};
    std::vector<std::string> lines;
    for (const std::string command : {"load", "run"}) {
      arguments[0] = command;
      Loader loader(arguments);
      lines = loader.lines();
      REQUIRE_MESSAGE(loader.exit_code() == 0, lines.back());
    }
    CHECK(Json::parse(lines.back())["summary"]["opening_settled"] == true);
    int64_t start_board_ns = 0;
    for (const std::string& line : lines)
      if (const Json said = Json::parse(line); said.value("phase", "") == "run-start")
        start_board_ns = said["board_ns"];
    CHECK(start_board_ns > 0);
    for (const std::string& line : folder.lines("events")) {
      const Json event = Json::parse(line);
      if (!event.contains("end_board_ns")) continue;
      const bool began_before = event["board_ns"].get<int64_t>() < start_board_ns;
      CHECK_MESSAGE((!began_before || event["end_board_ns"].get<int64_t>() <= start_board_ns),
                    line);
    }
  }
}

std::vector<Json> summaries(const std::vector<std::string>& lines) {
  std::vector<Json> all;
  for (const std::string& line : lines)
    if (const Json json = Json::parse(line); json.contains("summary"))
      all.push_back(json["summary"]);
  return all;
}

TEST_CASE("runs that follow find the open store, each with its own properties and summary") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    if (engine == "null") continue;
    Loader loader({"load", "--db", engine, "--path", folder / engine, "-p", "recordcount=50", "-p",
                   "fieldcount=1", "--then",
                   "insertproportion=1 readproportion=0 "
                   "updateproportion=0 operationcount=30",
                   "--then",
                   "recordcount=80 readproportion=1 updateproportion=0 maxexecutiontime=0.01",
                   "--then",
                   "recordcount=80 removeproportion=1 readproportion=0 updateproportion=0 "
                   "operationcount=200 putback=true removes=blind",
                   "--then",
                   "recordcount=80 readproportion=1 updateproportion=0 operationcount=80 "
                   "requestdistribution=sequential"});
    const std::vector<std::string> lines = loader.lines();
    REQUIRE_MESSAGE(loader.exit_code() == 0, lines.back());
    std::vector<std::string> expected{"open"};
    for (const std::string name : {"load", "run", "run", "run", "run"})
      expected.insert(expected.end(),
                      {name + "-start", name + "-end", "settle-start", "settle-end"});
    expected.insert(expected.end(), {"close", "closed"});
    const std::vector<Json> all = summaries(lines);
    REQUIRE(all.size() == 5);
    CHECK(all[0]["operations"] == 50);
    CHECK(all[1]["by_kind"]["insert"]["count"] == 30);
    CHECK(all[2]["out_of_time"] == true);
    // A removed record is back before the next removal, and its return is not counted.
    CHECK(all[3]["operations"] == 200);
    CHECK(all[3]["by_kind"].size() == 1);
    CHECK(all[3]["errors"] == 0);
    CHECK(all[4]["by_kind"]["read"]["count"] == 80);
    CHECK(all[4]["errors"] == 0);
    std::vector<std::string> phase_lines;
    for (const std::string& line : lines)
      if (const Json json = Json::parse(line); json.contains("phase"))
        phase_lines.push_back(json["phase"]);
    CHECK(phase_lines == expected);
  }
}

TEST_CASE("a run that follows is checked before anything is written") {
  const Folder folder{in_memory()};
  for (const auto& [words, says] : std::vector<std::pair<std::string, std::string>>{
           {"nosuchkey=1 operationcount=1", "nosuchkey"},
           {"operationcount=1 durability=sync", "the same for all phases"},
           {"operationcount", "operationcount"}}) {
    Loader loader({"load", "--db", "flatfolder", "--path", folder / "unmade", "-p", "recordcount=5",
                   "--then", words});
    const std::vector<std::string> lines = loader.lines();
    CHECK(loader.exit_code() == 2);
    REQUIRE(lines.size() == 1);
    CHECK_MESSAGE(lines[0].find(says) != std::string::npos, lines[0]);
    CHECK(!std::filesystem::exists(folder / "unmade"));
  }
}

TEST_CASE("bad input is one line that names it, and exit code 2") {
  const Folder folder{in_memory()};
  const std::string malformed = folder.write("malformed", "recordcount=10\nnonsense\n");
  const std::string garbage = folder.write("garbage", "\x1b[31m\xff\xc3");
  const std::string empty = folder.write("empty", "# nothing\n");
  const std::string ambiguous = folder.write("ambiguous", "ld0=words and a fie");
  const std::pair<Arguments, const char*> bad[] = {
      {{}, "no command; there are load, run, "},
      {{"lod"}, "lod: no such command"},
      {{"idle", "--seconds", "1"}, "idle: no such command"},
      {{"load"}, "--db"},
      {{"load", "--db", "oracle", "--path", "x"}, "--db oracle: not built in; there are "},
      {{"load", "--db", "leveldb", "-p", "recordcount=1"}, "--path: missing"},
      {{"load", "--db", "null", "--frobnicate"}, "--frobnicate"},
      {{"load", "--db", "null", "-p", "recordcount"}, "-p recordcount: expected key=value"},
      {{"load", "--db", "null", "-p", "recordcount=1", "-p", "readproporton=1"},
       "did you mean readproportion?"},
      {{"load", "--db", "leveldb", "-p", "leveldb.blok_bytes=1"},
       "did you mean leveldb.block_bytes?"},
      {{"load", "--db", "leveldb", "--path", malformed, "-p", "recordcount=1"},
       "cannot create directory"},
      {{"load", "--db", "null", "--trace", empty}, "ended without an operation"},
      {{"load", "--db", "null", "--trace", empty, "--resume", "-p", "recordcount=1"},
       "--resume with --trace"},
      {{"load", "--db", "null", "-P", garbage}, "found '?[31m\xc3\xbf\xc3\x83'"},
      {{"load", "--db", "null", "-p", "recordcount=many"},
       "property recordcount=many: expected a whole number"},
      {{"load", "--db", "null"}, "recordcount: not given"},
      {{"run", "--db", "null", "-p", "recordcount=1"}, "operationcount: not given"},
      {{"load", "--db", "null", "--workload", "/nowhere/w"}, "/nowhere/w"},
      {{"load", "--db", "null", "--workload", malformed}, "line 2"},
      {{"load", "--db", "null", "-p", "recordcount=1", "--op-log", "/nowhere/log"}, "/nowhere/log"},
      {{"load", "--db", "null", "-p", "recordcount=1", "--events", "/nowhere/events"},
       "/nowhere/events"},
      {{"load", "--db", "null", "--trace", "/nowhere/trace"}, "/nowhere/trace"},
      {{"load", "--db", "null", "--threads", "0", "-p", "recordcount=1"}, "--threads"},
      {{"trace", "--phase", "walk"}, "--phase"},
      {{"trace", "-p", "recordcount=1", "-p", "operationcount=1", "-p", "valuecharacters=any"},
       "valuecharacters=any"},
      {{"trace", "-p", "recordcount=1", "-p", "operationcount=1", "-p", "valuetext=generated"},
       "valuetext=generated: a line of a trace cannot hold"},
      {{"trace", "-p", "recordcount=1", "-p", "operationcount=1", "-p", "valuetext=" + ambiguous},
       "has 'field0', which in a trace is the name of a field"},
      {{"properties", "--db", "oracle"}, "--db oracle"},
  };
  for (const auto& [arguments, expected] : bad) {
    Loader loader(arguments);
    const std::vector<std::string> lines = loader.lines();
    CHECK(loader.exit_code() == 2);
    const auto errors = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
      return line.starts_with("loader: ");
    });
    CHECK(errors == 1);
    CHECK_MESSAGE(lines.back().find(expected) != std::string::npos, lines.back());
  }
}

TEST_CASE("operations that fail give exit code 1 and say how many") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    const std::string database = folder / engine;
    const Arguments common{"--db", engine, "--path", database, "-p", "settle=none"};
    Arguments load = common;
    load.insert(load.begin(), "load");
    load.insert(load.end(), {"-p", "recordcount=100"});
    CHECK(Loader(load).exit_code() == 0);
    // Asks for twice the rows that were loaded.
    const std::string trace =
        folder.write("trace",
                     "READ usertable user6284781860667377211 [ <all fields>]\n"
                     "READ usertable nobody [ <all fields>]\n");
    Arguments run = common;
    run.insert(run.begin(), "run");
    run.insert(run.end(), {"--trace", trace});
    Loader loader(run);
    const std::vector<std::string> lines = loader.lines();
    CHECK(loader.exit_code() == 1);
    CHECK(lines.back() ==
          "loader: 1 of 2 operations failed; the first: read of nobody: no such key");
    const Json summary = Json::parse(lines[lines.size() - 2])["summary"];
    CHECK(summary["errors"] == 1);
    CHECK(summary["replayed"] == true);
  }
}

TEST_CASE("a database of another workload gives exit code 4") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    const Arguments common{"--db",   engine,
                           "--path", folder / engine,
                           "-p",     "recordcount=100",
                           "-p",     "operationcount=10",
                           "-p",     "settle=none"};
    Arguments load = common;
    load.insert(load.begin(), "load");
    CHECK(Loader(load).exit_code() == 0);
    Arguments run = common;
    run.insert(run.begin(), "run");
    run.insert(run.end(), {"-p", "insertorder=ordered"});
    Loader loader(run);
    CHECK(loader.lines().back().find("insertorder") != std::string::npos);
    CHECK(loader.exit_code() == 4);
  }
}

TEST_CASE("an interrupt ends a run cleanly: log flushed, summary printed, exit code 130") {
  const Folder folder{in_memory()};
  Loader loader({"run", "--db", "null", "-p", "recordcount=1000", "-p", "maxexecutiontime=600",
                 "--op-log", folder / "log", "-p", "target=1000"});
  std::optional<std::string> line;
  while ((line = loader.line()) && line->find("run-start") == std::string::npos) {
  }
  REQUIRE(line.has_value());
  loader.interrupt();
  const std::vector<std::string> rest = loader.lines();
  REQUIRE(!rest.empty());
  const Json summary = Json::parse(rest.back())["summary"];
  CHECK(summary["interrupted"] == true);
  CHECK(loader.exit_code() == 130);
  CHECK(std::filesystem::file_size(folder / "log") >= 32);
}

TEST_CASE("a workload's own trace can be loaded and run") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    const Arguments workload{"-p", "recordcount=200",
                             "-p", "operationcount=300",
                             "-p", "requestdistribution=zipfian",
                             "-p", "insertproportion=0.1"};
    for (const std::string phase : {"load", "run"}) {
      Arguments trace{"trace", "--phase", phase, "--out", folder / "trace"};
      trace.insert(trace.end(), workload.begin(), workload.end());
      CHECK(Loader(trace).exit_code() == 0);
      Loader replay({phase, "--db", engine, "--path", folder / engine, "--trace", folder / "trace",
                     "-p", "settle=none"});
      const std::vector<std::string> lines = replay.lines();
      REQUIRE_MESSAGE(replay.exit_code() == 0, lines.back());
      CHECK(Json::parse(lines.back())["summary"]["operations"] == (phase == "load" ? 200 : 300));
    }
  }
}

TEST_CASE("an interrupted load resumes, and the count is verified") {
  const Folder folder{in_memory()};
  for (const std::string& engine : common_engines()) {
    const Arguments load{"load", "--db", engine, "--path", folder / engine, "-p", "settle=none"};
    Arguments part = load;
    // A target slow enough that the interrupt comes in the middle.
    part.insert(part.end(), {"-p", "recordcount=20000", "-p", "target=2000"});
    Loader interrupted(part);
    std::optional<std::string> line;
    while ((line = interrupted.line()) && line->find("load-start") == std::string::npos) {
    }
    interrupted.interrupt();
    CHECK(interrupted.exit_code() == 130);
    Arguments rest = load;
    rest.insert(rest.end(), {"-p", "recordcount=20000", "--resume"});
    Loader resumed(rest);
    const std::vector<std::string> lines = resumed.lines();
    REQUIRE_MESSAGE(resumed.exit_code() == 0, lines.back());
    const Json summary = Json::parse(lines.back())["summary"];
    CHECK(summary["resumed"]["records_after"] == 20'000);
    CHECK(summary["resumed"]["records_before"].get<int64_t>() +
              summary["operations"].get<int64_t>() ==
          20'000);
  }
}

TEST_CASE("a check refuses settings that the engine refuses, and leaves nothing") {
  const Folder folder{in_memory()};
  const auto check = [&](const std::string& engine, const std::string& setting) {
    Loader loader({"run", "--check", "--db", engine, "--path", folder / "db", "-p",
                   "recordcount=10", "-p", "operationcount=10", "-p", setting});
    const std::vector<std::string> lines = loader.lines();
    if (loader.exit_code() != 0) {
      REQUIRE(lines.size() == 1);
      CHECK(lines[0].find(setting.substr(0, setting.find('='))) != std::string::npos);
    }
    return loader.exit_code();
  };
  for (const std::string& engine : common_engines()) {
    CHECK(check(engine, "durability=maybe") == 2);
    CHECK(check(engine, "durability=sync") == 0);
  }
  if (find_engine("leveldb") != nullptr) {
    CHECK(check("leveldb", "leveldb.compression=zip") == 2);
    CHECK(check("leveldb", "leveldb.block_bytes=-1") == 2);
  }
  if (find_engine("sqlite") != nullptr) CHECK(check("sqlite", "sqlite.page_bytes=1000") == 2);
  CHECK(!std::filesystem::exists(folder / "db"));
}

TEST_CASE("properties of no use with a trace, or without one, are ignored ones") {
  const Folder folder{in_memory()};
  const std::string trace = folder.write("trace", "READ other user1 [ <all fields>]\n");
  const Arguments common{"run",         "--db", "null",        "-p", "recordcount=10",  "-p",
                         "settle=none", "-p",   "table=other", "-p", "operationcount=3"};
  for (const bool has_trace : {false, true}) {
    Arguments arguments = common;
    if (has_trace) arguments.insert(arguments.end(), {"--trace", trace});
    Loader loader(arguments);
    const std::vector<std::string> lines = loader.lines();
    REQUIRE_MESSAGE(loader.exit_code() == 0, lines.back());
    const Json expected{has_trace ? "operationcount" : "table"};
    CHECK(Json::parse(lines.back())["summary"]["ignored"] == expected);
    arguments.emplace_back("--check");
    CHECK(Json::parse(Loader(arguments).lines().back())["ignored"] == expected);
  }
}

TEST_CASE("databases and properties list what there is") {
  Loader databases({"databases"});
  CHECK(databases.lines().size() == engines().size());
  Loader properties({"properties"});
  CHECK(properties.lines().size() > 40);
}

TEST_CASE("the reference page lists every property and every option") {
  const auto read = [](const std::string& path) {
    std::ifstream in(path);
    REQUIRE(in);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string page = read(OPJOULE_SOURCE_ROOT "/docs/reference/loader.md");
  for (const auto* rules : {&workload_rules(), &inert_rules()})
    for (const PropertyRule& rule : *rules)
      CHECK_MESSAGE(page.find("`" + rule.key + "`") != std::string::npos, rule.key);
  for (const std::string command : {"load", "run", "trace"}) {
    Loader help({command, "--help"});
    for (const std::string& line : help.lines()) {
      const size_t dashes = line.find("--");
      if (dashes == std::string::npos || line.find_first_not_of(" ,-P") < dashes) continue;
      const std::string option = line.substr(dashes, line.find_first_of(" :[,", dashes) - dashes);
      CHECK_MESSAGE((option == "--help" || page.find(option) != std::string::npos), option);
    }
  }
}

}  // namespace
}  // namespace opjoule
