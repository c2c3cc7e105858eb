// medium-sim as a program: what happens to commands that run on its medium. Each waits for what it
// expects; none looks at how long something took.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <vector>

#include "board/clock.h"
#include "medium-sim/program_files.h"
#include "tests/loader_process.h"
#include "tests/on_disk.h"

namespace opjoule {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) sleep_until(board_ns() + 1'000'000);
}

class ServingMedium : public Program {
 public:
  ServingMedium(const Folder& folder, const Arguments& medium)
      : Program(OPJOULE_MEDIUM_SIM_BINARY, arguments(folder, medium)),
        first(Json::parse(line().value())),
        stat_(folder / "stat") {}

  // One field of the file `stat`, from 0.
  [[nodiscard]] uint64_t stat(int field) const {
    std::istringstream in(text_of(stat_));
    uint64_t value = 0;
    for (int i = 0; i <= field; ++i) in >> value;
    return value;
  }
  [[nodiscard]] uint64_t read_bytes() const { return stat(2) * 512; }
  [[nodiscard]] uint64_t read_ms() const { return stat(3); }
  [[nodiscard]] uint64_t written_bytes() const { return stat(6) * 512; }
  // Drops the page cache of its files; what it says of it.
  Json drop() {
    write("drop\n");
    while (true)
      if (const Json said = Json::parse(line().value()); said.contains("dropped"))
        return said.at("dropped");
  }
  [[nodiscard]] bool busy() const { return stat(8) > 0; }
  [[nodiscard]] uint64_t flushes() const { return stat(15); }

  const Json first;

 private:
  static Arguments arguments(const Folder& folder, const Arguments& medium) {
    Arguments all{"serve", "--socket", folder / "socket", "--state", folder / ""};
    all.insert(all.end(), medium.begin(), medium.end());
    return all;
  }
  const std::string stat_;
};

Arguments medium(const std::string& write_rate, const std::string& flush_s,
                 const std::string& limit_bytes = "1000000000") {
  return {"--write-bytes-per-s",
          write_rate,
          "--read-bytes-per-s",
          "1e9",
          "--flush-s",
          flush_s,
          "--dirty-limit-bytes",
          limit_bytes,
          "--dirty-background-bytes",
          limit_bytes};
}

class OnMedium : public Program {
 public:
  OnMedium(const Folder& folder, const std::string& shell)
      : Program(OPJOULE_MEDIUM_SIM_BINARY,
                {"run", "--socket", folder / "socket", "--", "sh", "-c", "echo $$; " + shell}),
        pid(std::stoi(line().value())) {}
  const int pid;
};

bool held(int pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && (stat[name_end + 2] == 't' || stat[name_end + 2] == 'T');
}

// Bytes of a file that are in this computer's memory.
uint64_t cached_bytes(const std::string& path) {
  const uint64_t bytes = std::filesystem::file_size(path);
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  void* start = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  REQUIRE(start != MAP_FAILED);
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page_bytes - 1) / page_bytes);
  CHECK(::mincore(start, bytes, pages.data()) == 0);
  ::munmap(start, bytes);
  return page_bytes * static_cast<uint64_t>(std::count_if(
                          pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

// A medium with one file of 16 MiB in the folder of which it bounds and drops the page cache.
struct FilledMedium {
  explicit FilledMedium(const Arguments& cache = {}, const std::string& read_rate = "1e9") {
    REQUIRE(std::system("python3 -c 'import mmap, os'") == 0);  // its own files are cached then
    std::filesystem::create_directory(files);
    std::ofstream(files + "/a") << std::string(kBytes, 'x');
    Arguments all = medium("1e9", "0");
    all[3] = read_rate;
    all.insert(all.end(), {"--files", files});
    all.insert(all.end(), cache.begin(), cache.end());
    serving.emplace(folder, all);
  }

  // Bytes that the medium has read once a program has read the file so often, each time after no
  // more of it was cached than `cached_max`. The program's sync comes after all reads: programs
  // that end are no longer looked at.
  uint64_t read_by_program(int times, const std::string& how = kByCalls,
                           uint64_t cached_max = kBytes) {
    OnMedium program(
        folder, "exec python3 -c 'import mmap, os\nfor _ in range(" + std::to_string(times) +
                    "):\n print(flush=True), input()\n" + " with open(\"" + files +
                    "/a\", \"rb\", buffering=0) as f: " + how + "\nf = os.open(\"" + folder / "b" +
                    "\", os.O_CREAT | os.O_WRONLY)\nos.write(f, b\"x\")\nos.fsync(f)'");
    for (int i = 0; i < times; ++i) {
      CHECK(program.line().has_value());
      wait_until([&] { return cached_bytes(files + "/a") <= cached_max; });
      program.write("\n");
    }
    CHECK(program.exit_code() == 0);
    CHECK(serving->exit_code() == 0);
    return serving->read_bytes();
  }

  // Whether so many bytes were read: the file so often, and less than a quarter of it beside. A
  // computer may drop pages of the program and of the file at any time.
  static bool is_read(uint64_t bytes, uint64_t times) {
    return bytes / kBytes == times && bytes % kBytes < kBytes / 4;
  }

  static constexpr uint64_t kBytes = 16 << 20;
  static constexpr const char* kByCalls = "f.read()";
  static constexpr const char* kByMap =
      "mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ).find(b\"y\")";
  const Folder folder{on_disk()};
  const std::string files = folder / "files";
  std::optional<ServingMedium> serving;
};

}  // namespace

TEST_CASE("a command on the medium keeps its process and gives its exit code") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e9", "0"));
  CHECK(serving.first.at("medium_sim").is_string());
  CHECK(OnMedium(folder, "exit 7").exit_code() == 7);
  CHECK(serving.exit_code() == 0);
}

TEST_CASE("a sync puts the file's bytes on the medium and flushes it") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder, "exec dd if=/dev/zero bs=65536 count=16 conv=fsync of=" + folder / "a");
  CHECK(command.exit_code() == 0);
  CHECK(serving.exit_code() == 0);
  CHECK(serving.written_bytes() >= 16 * 65536);
  CHECK(serving.flushes() == 1);
}

TEST_CASE("a small write into a large cached file is no more on the medium than was written") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e9", "0"));
  const std::string file = folder / "large";
  OnMedium shell(folder,
                 "head -c 16777216 /dev/zero > " + file + " && sync " + file +
                     " && echo filled && read go && printf 12345678 | dd of=" + file +
                     " bs=8 seek=1000000 conv=notrunc,fsync status=none && echo done && read go");
  CHECK(shell.line().value() == "filled");
  wait_until([&] { return serving.written_bytes() >= 16777216; });  // the file lags by 10 ms
  const uint64_t before = serving.written_bytes();
  shell.write("\n");
  CHECK(shell.line().value() == "done");
  wait_until([&] { return serving.written_bytes() > before; });
  CHECK(serving.written_bytes() - before <= 65536);
  shell.write("\n");
}

TEST_CASE("each write of a file opened with O_DSYNC is on the medium before the next") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  if (!serving.first.at("slows")) return;
  const std::string file = folder / "a";
  OnMedium command(folder, "exec python3 -c 'import os\nf = os.open(\"" + file +
                               "\", os.O_RDWR | os.O_CREAT | os.O_DSYNC)\n"
                               "for _ in range(5): os.write(f, b\"x\" * 4096)'");
  CHECK(command.exit_code() == 0);
  CHECK(serving.exit_code() == 0);
  CHECK(serving.flushes() == 5);
  CHECK(serving.written_bytes() >= 5 * 4096);
  CHECK(std::filesystem::file_size(file) == 5 * 4096);
}

TEST_CASE("a file opened with O_DSYNC that dd moves to the standard output is synced") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder, "exec dd if=/dev/zero bs=4096 count=5 oflag=dsync of=" + folder / "a");
  CHECK(command.exit_code() == 0);
  CHECK(serving.exit_code() == 0);
  CHECK(serving.flushes() == 5);
  CHECK(serving.written_bytes() >= 5 * 4096);
}

TEST_CASE("a file opened by openat2 with O_DSYNC is synced") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder,
                   "exec python3 -c 'import ctypes, os, struct\n"
                   "how = struct.pack(\"QQQ\", os.O_WRONLY | os.O_CREAT | os.O_DSYNC, 0o600, 0)\n"
                   "call = ctypes.CDLL(None).syscall\n"
                   "f = call(437, -100, b\"" +
                       folder / "a" +
                       "\", how, len(how))\n"
                       "for _ in range(5): os.write(f, b\"x\" * 4096)'");
  CHECK(command.exit_code() == 0);
  CHECK(serving.exit_code() == 0);
  CHECK(serving.flushes() == 5);
  CHECK(std::filesystem::file_size(folder / "a") == 5 * 4096);
}

TEST_CASE("writes past the page cache are on the medium when they return, without a flush") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder, "exec dd if=/dev/zero bs=4096 count=5 oflag=direct of=" + folder / "a");
  CHECK(command.exit_code() == 0);
  CHECK(serving.exit_code() == 0);
  CHECK(serving.written_bytes() >= 5 * 4096);
  CHECK(serving.flushes() == 0);
}

TEST_CASE("the error of a sync reaches the command") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  OnMedium command(folder, "dd if=/dev/zero bs=1 count=1 conv=fsync of=/dev/null");
  CHECK(command.exit_code() == 1);  // EINVAL
}

TEST_CASE("a synced file that cannot be opened fails as without a medium") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  OnMedium command(folder, "exec dd if=/dev/zero count=1 oflag=dsync of=/no/such/file");
  CHECK(command.exit_code() == 1);
}

TEST_CASE("a sync that waits is let go when the medium is killed") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "3600"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder, "exec dd if=/dev/zero bs=4096 count=1 conv=fsync of=" + folder / "a");
  wait_until([&] { return serving.busy(); });
  serving.send_signal(SIGKILL);
  CHECK(serving.wait() == -SIGKILL);
  CHECK(command.exit_code() == 0);
}

TEST_CASE("a sync that waits is let go when the medium ends") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "3600"));
  if (!serving.first.at("slows")) return;
  OnMedium command(folder, "exec dd if=/dev/zero bs=4096 count=1 conv=fsync of=" + folder / "a");
  wait_until([&] { return serving.busy(); });
  CHECK(serving.exit_code() == 0);
  CHECK(command.exit_code() == 0);
}

TEST_CASE("a command syncs after the medium was killed") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0"));
  OnMedium command(folder,
                   "read line; exec dd if=/dev/zero bs=4096 count=1 conv=fsync of=" + folder / "a");
  serving.send_signal(SIGKILL);
  CHECK(serving.wait() == -SIGKILL);
  command.write("go on\n");
  CHECK(command.exit_code() == 0);
}

TEST_CASE("a writer beyond the dirty limit is held, and let go when the medium is killed") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1", "0", "1000000"));
  OnMedium command(folder, "exec dd if=/dev/zero bs=65536 count=200000 of=" + folder / "a");
  wait_until([&] { return held(command.pid); });
  serving.send_signal(SIGKILL);
  CHECK(serving.wait() == -SIGKILL);
  wait_until([&] { return !held(command.pid); });
  command.send_signal(SIGKILL);
  CHECK(command.wait() == -SIGKILL);
}

TEST_CASE("a writer beyond the dirty limit is held, and let go when the medium ends") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1", "0", "1000000"));
  OnMedium command(folder, "exec dd if=/dev/zero bs=65536 count=200000 of=" + folder / "a");
  wait_until([&] { return held(command.pid); });
  CHECK(serving.exit_code() == 0);
  wait_until([&] { return !held(command.pid); });
  command.send_signal(SIGKILL);
  CHECK(command.wait() == -SIGKILL);
}

TEST_CASE("a held writer can be killed") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1", "0", "1000000"));
  OnMedium command(folder, "exec dd if=/dev/zero bs=65536 count=200000 of=" + folder / "a");
  wait_until([&] { return held(command.pid); });
  command.send_signal(SIGKILL);
  CHECK(command.wait() == -SIGKILL);
  CHECK(serving.exit_code() == 0);
}

TEST_CASE("a daemon that left its session is on the medium, too") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e9", "0.001"));
  if (!serving.first.at("slows")) return;
  const std::string file = folder / "a";
  OnMedium command(folder,
                   "setsid sh -c 'sh -c \"sleep 0.1; dd if=/dev/zero bs=65536 count=16 of=" + file +
                       " conv=fsync 2>" + folder / "b" + "; echo done >" + folder / "c" +
                       "\" >/dev/null 2>&1 </dev/null &'");
  CHECK(command.exit_code() == 0);
  wait_until([&] { return text_of(folder / "c") == "done\n"; });
  CHECK(serving.exit_code() == 0);
  CHECK(serving.flushes() == 1);
  CHECK(serving.written_bytes() >= 16 * 65536);
}

TEST_CASE("without a medium to serve it a command does not start") {
  const Folder folder{on_disk()};
  Program command(OPJOULE_MEDIUM_SIM_BINARY,
                  {"run", "--socket", folder / "none", "--", "touch", folder / "a"});
  CHECK(command.exit_code() != 0);
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_CASE("what the page cache has costs the medium nothing") {
  FilledMedium filled;
  if (!filled.serving->first.at("slows")) return;
  const uint64_t bytes = filled.read_by_program(2);
  CHECK(FilledMedium::is_read(bytes, 0));
  CHECK(filled.serving->read_ms() == bytes / 1'000'000);
}

TEST_CASE("after the page cache was dropped a file is read from the medium, once") {
  FilledMedium filled;
  if (!filled.serving->first.at("slows")) return;
  const Json dropped = filled.serving->drop();
  CHECK(dropped.at("cached_bytes") == FilledMedium::kBytes);
  CHECK(dropped.at("left_bytes") == 0);
  CHECK(FilledMedium::is_read(filled.read_by_program(2), 1));
}

TEST_CASE("reads take the medium the time that its rate says") {
  FilledMedium filled({}, "1e8");
  if (!filled.serving->first.at("slows")) return;
  filled.serving->drop();
  const uint64_t bytes = filled.read_by_program(1);
  CHECK(FilledMedium::is_read(bytes, 1));
  CHECK(filled.serving->read_ms() == bytes / 100'000);
}

TEST_CASE("a mapped file is read from the medium after the page cache was dropped") {
  FilledMedium filled;
  if (!filled.serving->first.at("slows")) return;
  filled.serving->drop();
  CHECK(FilledMedium::is_read(filled.read_by_program(1, FilledMedium::kByMap), 1));
}

TEST_CASE("a file that the board's memory has no room for is read from the medium again") {
  constexpr uint64_t kRoomBytes = FilledMedium::kBytes / 4;
  FilledMedium filled({"--cache-bytes", std::to_string(kRoomBytes)}, "1e8");
  if (!filled.serving->first.at("slows")) return;
  filled.serving->drop();
  CHECK(filled.read_by_program(3, FilledMedium::kByCalls, kRoomBytes) >=
        3 * FilledMedium::kBytes - 2 * kRoomBytes);
}

TEST_CASE("a file that the board's memory has room for is read from the medium once") {
  FilledMedium filled({"--cache-bytes", "67108864"}, "1e8");
  if (!filled.serving->first.at("slows")) return;
  filled.serving->drop();
  CHECK(FilledMedium::is_read(filled.read_by_program(3), 1));
}

TEST_CASE("a reader of the medium's files never sees half of a line") {
  const Folder folder{on_disk()};
  ServingMedium serving(folder, medium("1e8", "0.001"));
  OnMedium command(folder, "exec dd if=/dev/zero bs=4096 count=200 oflag=dsync of=" + folder / "a");
  const size_t size = text_of(folder / "stat").size();
  CHECK(size == 17 * 15);
  for (int i = 0; i < 1000; ++i) {
    CHECK(text_of(folder / "stat").size() == size);
    CHECK(text_of(folder / "meminfo").ends_with(" kB\n"));
  }
  CHECK(command.exit_code() == 0);
}

}  // namespace opjoule
