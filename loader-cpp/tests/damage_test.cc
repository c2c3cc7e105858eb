// A damaged database: whatever file was cut, emptied, removed or has a bit flipped, the reason is
// that, and the exit code is that of corrupt data.
#include <fnmatch.h>

#include <algorithm>
#include <regex>

#include "loader/database.h"
#include "tests/in_memory.h"
#include "tests/loader_process.h"

namespace opjoule {
namespace {

namespace fs = std::filesystem;

enum class Damage { kHalf, kEmpty, kRemoved, kFlipped };

struct Case {
  const char* engine;
  const char* file;  // pattern; the largest of those that fit
  Damage damage;
  const char* expected;  // in the reason: a regular expression, as versions of an engine differ
};

const Case kCases[] = {
    {"leveldb", "*.ldb", Damage::kHalf, "the file is shorter than it was"},
    {"leveldb", "*.ldb", Damage::kFlipped, "operations failed; the first: read of "},
    {"leveldb", "*.ldb", Damage::kRemoved, "missing files"},
    {"leveldb", "*.log", Damage::kFlipped, "the log is damaged: "},
    {"leveldb", "CURRENT", Damage::kRemoved, "CURRENT is missing"},
    {"leveldb", "MANIFEST-*", Damage::kFlipped, "leveldb: Corruption: "},
    {"rocksdb", "*.sst", Damage::kHalf, "too short|Sst file size mismatch"},
    {"rocksdb", "*.sst", Damage::kFlipped, "block checksum mismatch"},
    {"rocksdb", "*.log", Damage::kFlipped, "rocksdb: Corruption: "},
    {"rocksdb", "MANIFEST-*", Damage::kRemoved, "MANIFEST-"},
    {"sqlite", "usertable.sqlite", Damage::kHalf, "malformed"},
    {"sqlite", "usertable.sqlite", Damage::kEmpty, "usertable.sqlite is empty"},
    {"lmdb", "data.mdb", Damage::kHalf, "data.mdb: ends before data that it is to hold"},
    {"lmdb", "data.mdb", Damage::kRemoved, "data.mdb is missing"},
    {"berkeleydb", "usertable.db", Damage::kHalf, "berkeleydb: "},
    {"berkeleydb", "usertable.db", Damage::kEmpty, "usertable.db is empty"},
    {"flatfolder", "records/*", Damage::kHalf, "stored record of "},
};

bool is_log(const Case& damaged) { return std::string(damaged.file) == "*.log"; }

Arguments arguments(const Case& damaged, const std::string& command, const std::string& path) {
  const std::string engine = damaged.engine;
  Arguments all{command,
                "--db",
                engine,
                "--path",
                path,
                "-p",
                "recordcount=600",
                "-p",
                "operationcount=600",
                "-p",
                "dataintegrity=true",
                "-p",
                "requestdistribution=sequential",
                "-p",
                "readproportion=1",
                "-p",
                "updateproportion=0"};
  // So that there are tables beside the log.
  if (engine == "leveldb" || engine == "rocksdb")
    all.insert(all.end(), {"-p", engine + ".write_buffer_bytes=65536"});
  // So that rows are in the log: a load that settles has them all in tables.
  if (is_log(damaged)) all.insert(all.end(), {"-p", "settle=none"});
  return all;
}

fs::path largest(const fs::path& folder, const std::string& pattern) {
  fs::path found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder);
    if (!entry.is_regular_file() || fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME) != 0)
      continue;
    if (found.empty() || entry.file_size() > fs::file_size(found)) found = entry.path();
  }
  REQUIRE_MESSAGE(!found.empty(), pattern);
  return found;
}

void flip_a_bit(const fs::path& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto at = static_cast<std::streamoff>(fs::file_size(path) / 3);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 4);
  file.seekp(at);
  file.put(byte);
}

void damage(const fs::path& path, Damage how) {
  if (how == Damage::kHalf) fs::resize_file(path, fs::file_size(path) / 2);
  if (how == Damage::kEmpty) fs::resize_file(path, 0);
  if (how == Damage::kRemoved) fs::remove(path);
  if (how == Damage::kFlipped) flip_a_bit(path);
}

TEST_CASE("a damaged database is corrupt data, and never bad input, a failed device or a crash") {
  const Folder folder{in_memory()};
  for (const Case& damaged : kCases) {
    if (find_engine(damaged.engine) == nullptr) continue;
    CAPTURE(damaged.engine);
    CAPTURE(damaged.file);
    CAPTURE(static_cast<int>(damaged.damage));
    const std::string whole =
        folder / (damaged.engine + std::string(is_log(damaged) ? "-log" : ""));
    const std::string copy = folder / "copy";
    if (!fs::exists(whole)) CHECK(Loader(arguments(damaged, "load", whole)).exit_code() == 0);
    fs::remove_all(copy);
    fs::copy(whole, copy, fs::copy_options::recursive);
    damage(largest(copy, damaged.file), damaged.damage);
    Loader run(arguments(damaged, "run", copy));
    const std::vector<std::string> lines = run.lines();
    CHECK(run.exit_code() == 4);
    const bool says = lines.back().starts_with("loader: ") &&
                      std::regex_search(lines.back(), std::regex(damaged.expected));
    CHECK_MESSAGE(says, lines.back());
  }
}

}  // namespace
}  // namespace opjoule
