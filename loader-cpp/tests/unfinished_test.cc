// What ends a load or a run before it is whole: each says so in one line, with an exit code of its
// own.
#include <sys/mount.h>

#include "loader/database.h"
#include "tests/in_memory.h"
#include "tests/loader_process.h"

namespace opjoule {
namespace {

struct Ended {
  int exit_code = 0;
  std::string last_line;
  Json summary;
};

Ended end_of(const Arguments& arguments, const std::string& input = "") {
  Loader loader(arguments, input);
  const std::vector<std::string> lines = loader.lines();
  Ended ended;
  ended.exit_code = loader.exit_code();
  REQUIRE(!lines.empty());
  ended.last_line = lines.back();
  for (const std::string& line : lines)
    if (line.starts_with("{\"summary\"")) ended.summary = Json::parse(line)["summary"];
  return ended;
}

bool says(const std::string& line, const std::string& words) {
  return line.starts_with("loader: ") && line.find(words) != std::string::npos;
}

TEST_CASE("a load that maxexecutiontime cuts short has failed, a run has not") {
  Arguments load{
      "load", "--db",       "null", "-p", "recordcount=100000", "-p", "maxexecutiontime=0.05",
      "-p",   "target=2000"};
  const Ended cut = end_of(load);
  CHECK(cut.exit_code == 7);
  CHECK(says(cut.last_line, "of 100000 records; finish it with load --resume"));
  CHECK(cut.summary["out_of_time"] == true);
  CHECK(cut.summary["operations"] < 100'000);
  load.front() = "run";
  const Ended run = end_of(load);
  CHECK(run.exit_code == 0);
  CHECK(run.summary["out_of_time"] == true);
  const Ended whole =
      end_of({"load", "--db", "null", "-p", "recordcount=100", "-p", "maxexecutiontime=600"});
  CHECK(whole.exit_code == 0);
  CHECK(whole.summary["out_of_time"] == false);
}

TEST_CASE("a run whose operation log cannot be written ends at once, and says why") {
  const Folder folder{in_memory()};
  if (mount("none", (folder / "").c_str(), "tmpfs", 0, "size=256k") != 0) {
    WARN_MESSAGE(false, "not run: mounting a tmpfs needs root");
    return;
  }
  const Ended ended = end_of({"run", "--db", "null", "--threads", "2", "-p", "recordcount=100",
                              "-p", "operationcount=2000000000", "--op-log", folder / "log"});
  umount2((folder / "").c_str(), MNT_DETACH);
  CHECK(ended.exit_code == 5);
  CHECK(says(ended.last_line, "/log: cannot be written: No space left on device"));
  CHECK(!ended.summary["failure"].is_null());
  CHECK(ended.summary["operations"].get<int64_t>() < 2'000'000);
}

TEST_CASE("input without an end is refused by its first bytes or at a limit, in little memory") {
  const std::pair<Arguments, const char*> endless[] = {
      {{"load", "--db", "null", "--trace", "/dev/zero"},
       "trace /dev/zero, line 1, byte 0: expected READ"},
      {{"load", "--db", "null", "-P", "/dev/zero"}, "workload file /dev/zero: has more than 1 MiB"},
      {{"load", "--db", "null", "-p", "recordcount=1", "-p", "fieldlengthdistribution=histogram",
        "-p", "fieldlengthhistogram=/dev/zero"},
       "fieldlengthhistogram=/dev/zero: has more than 16 MiB"},
      {{"load", "--db", "null", "-p", "recordcount=1", "--threads", "1000", "-p", "fieldcount=1",
        "-p", "fieldlength=1000000000"},
       "with 1000 threads need about 3814697 MiB"},
  };
  for (const auto& [arguments, expected] : endless) {
    const Ended ended = end_of(arguments);
    CHECK(ended.exit_code == 2);
    CHECK_MESSAGE(says(ended.last_line, expected), ended.last_line);
    if (!ended.summary.is_null()) CHECK(ended.summary["peak_memory_bytes"] < 256 << 20);
  }
}

}  // namespace
}  // namespace opjoule
