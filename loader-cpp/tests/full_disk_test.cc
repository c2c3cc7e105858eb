// A full disk, for every engine: said as kNoSpace, and what was written before stays readable, at
// once and after room was made. Needs root, for a small tmpfs of its own.
#include <sys/mount.h>

#include <cstdlib>
#include <fstream>

#include "tests/engine_fixture.h"
#include "tests/loader_process.h"

namespace opjoule {
namespace {

class SmallDisk {
 public:
  explicit SmallDisk(int mebibytes) {
    mounted_ = mount("none", directory_.path().c_str(), "tmpfs", 0, size(mebibytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(directory_.path().c_str(), MNT_DETACH);
  }
  [[nodiscard]] bool mounted() const { return mounted_; }
  void resize(int mebibytes) {
    REQUIRE(mount("none", directory_.path().c_str(), "tmpfs", MS_REMOUNT,
                  size(mebibytes).c_str()) == 0);
  }
  [[nodiscard]] std::string path() const { return directory_.path() + "/database"; }

 private:
  static std::string size(int mebibytes) { return "size=" + std::to_string(mebibytes) + "m"; }
  TemporaryDirectory directory_;
  bool mounted_ = false;
};

// Incompressible, and known again by its number.
Row noise(size_t number) {
  std::string value(4000, '\0');
  uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (char& byte : value) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return make_row({{0, value}, {1, std::to_string(number)}, {2, ""}});
}

size_t fill(Client& client, Status* last) {
  for (size_t written = 0; written < 100000; ++written) {
    *last = client.insert(key_of(written), noise(written));
    if (!last->is_ok()) return written;
  }
  return 0;
}

size_t readable(Client& client, size_t written) {
  Row found;
  size_t good = 0;
  for (size_t i = 0; i < written; ++i)
    if (client.read(key_of(i), {}, found).is_ok() && same(found, noise(i))) ++good;
  return good;
}

TEST_CASE("a full disk is kNoSpace, and everything acknowledged before stays readable") {
  for (const Engine& engine : engines()) {
    if (engine.name == "null" || engine.name == "mongodb") continue;
    CAPTURE(engine.name);
    SmallDisk disk(24);
    if (!disk.mounted()) {
      WARN_MESSAGE(false, "not run: mounting a tmpfs needs root");
      return;
    }
    Place place;
    place.path = disk.path();
    size_t written = 0;
    {
      Opened opened = place.open(engine, How::kCreate);
      auto client = opened.client();
      Status last;
      written = fill(*client, &last);
      CHECK_MESSAGE(last.code() == StatusCode::kNoSpace, last.message());
      CHECK(last.message().find('\n') == std::string::npos);
      CHECK(written > 1000);
      CHECK(readable(*client, written) == written);
      client.reset();
      disk.resize(64);
      (void)opened.database->close();  // may say again what the writer was told
    }
    Opened opened = place.open(engine, How::kOpen);
    auto client = opened.client();
    CHECK(readable(*client, written) == written);
    CHECK(opened.count() >= written);
    CHECK_OK(client->insert("user-after", row_of(1)));
  }
}

TEST_CASE("a full disk stays full, and the database is closed with a word at most") {
  for (const Engine& engine : engines()) {
    if (engine.name == "null" || engine.name == "mongodb") continue;
    CAPTURE(engine.name);
    SmallDisk disk(3);
    if (!disk.mounted()) return;
    Place place;
    place.path = disk.path();
    Opened opened = place.open(engine, How::kCreate);
    if (!opened.status.is_ok()) continue;  // too small for an empty database of this engine
    auto client = opened.client();
    Status last;
    fill(*client, &last);
    CHECK_MESSAGE(last.code() == StatusCode::kNoSpace, last.message());
    for (size_t i = 0; i < 20; ++i) last = client->insert(key_of(1'000'000 + i), noise(i));
    client.reset();
    bool settled = false;
    const Status after[] = {opened.database->settle(1, &settled), opened.database->close()};
    for (const Status& status : after) CHECK(status.message().find('\n') == std::string::npos);
  }
}

TEST_CASE("a disk without any room refuses a new database in one line") {
  for (const Engine& engine : engines()) {
    if (engine.name == "null" || engine.name == "mongodb") continue;
    CAPTURE(engine.name);
    SmallDisk disk(1);
    if (!disk.mounted()) return;
    const std::string fill_up = "head -c 2M /dev/zero > " + disk.path() + ".filler 2>/dev/null";
    CHECK(std::system(fill_up.c_str()) != 0);
    Place place;
    place.path = disk.path();
    Opened opened = place.open(engine, How::kCreate);
    CHECK_MESSAGE(opened.status.code() == StatusCode::kNoSpace, opened.status.message());
  }
}

// More than any computer does before the time is up, which is another exit code.
const Arguments kEndlessLoad{"load", "-p", "recordcount=1000000000", "-p", "maxexecutiontime=100"};

// The command ends with "no space left", and its last line names the file and says what to do.
void check_ended_by(const std::string& file, Arguments arguments) {
  CAPTURE(file);
  Loader loader(std::move(arguments));
  const std::vector<std::string> lines = loader.lines();
  CHECK(loader.exit_code() == 5);
  size_t told = 0;
  for (const std::string& line : lines)
    if (line.starts_with("loader: ") && line.find(file + ": cannot be written") < line.size() &&
        line.find("make room, or name a file on another disk") < line.size())
      ++told;
  CHECK(told == 1);
  for (const std::string& line : lines)
    if (line.find("\"phase\"") < line.size())
      CHECK(Json::parse(line)["operations"].get<uint64_t>() < 1'000'000'000);
}

TEST_CASE("a full disk under the operation log or the events ends a load at once") {
  for (const char* option : {"--op-log", "--events"}) {
    TemporaryDirectory directory;
    Arguments arguments = kEndlessLoad;
    const Arguments more{"--db", "flatfolder",  "--path", directory.path() + "/database",
                         "-p",   "settle=none", "-p",     "durability=sync",
                         option, "/dev/full"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_ended_by("/dev/full", arguments);
  }
}

}  // namespace
}  // namespace opjoule
