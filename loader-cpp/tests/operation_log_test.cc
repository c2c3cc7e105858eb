#include "oplog/operation_log.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace opjoule {
namespace {

struct Entry {
  int thread;
  int kind;
  bool ok;
  int64_t start_ns;
  int64_t end_ns;
  uint64_t bytes;
  bool operator==(const Entry&) const = default;
};

template <typename Int>
Int take(std::string_view& in) {
  Int value;
  if (in.size() < sizeof value) throw std::out_of_range("the log ends inside a number");
  std::memcpy(&value, in.data(), sizeof value);
  in.remove_prefix(sizeof value);
  return value;
}

uint64_t take_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(take<char>(in));
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
}

void decode_block(int thread, uint64_t base_ns, uint32_t records, std::string_view payload,
                  std::vector<Entry>& rows) {
  uint64_t sizes[8] = {};
  bool known[8] = {};
  int64_t at = static_cast<int64_t>(base_ns);
  for (uint32_t record = 0; record < records; ++record) {
    const uint64_t tag = take_varint(payload);
    const uint64_t second = take_varint(payload);
    const uint64_t third = take_varint(payload);
    const int kind = static_cast<int>(tag & 7);
    if (tag & 0x10) {
      if (third != 0) throw std::domain_error("a size record's third number is not 0");
      sizes[kind] = second;
      known[kind] = true;
      continue;
    }
    if (!known[kind]) throw std::domain_error("an operation before its kind's size");
    const int64_t start = at + static_cast<int64_t>(second);
    at = start + static_cast<int64_t>(third);
    rows.push_back({thread, kind, (tag & 8) != 0, start, at, sizes[kind]});
  }
  CHECK(payload.empty());
}

// A header's checksum is taken with zeros in its own place, bytes 28 to 31.
void check_header(std::string_view in, size_t bytes) {
  REQUIRE(in.size() >= bytes);
  std::string header(in.substr(0, bytes));
  std::string_view at = std::string_view(header).substr(28);
  const auto checksum = take<uint32_t>(at);
  header.replace(28, 4, 4, '\0');
  CHECK(checksum ==
        crc32(0, reinterpret_cast<const Bytef*>(header.data()), static_cast<uInt>(header.size())));
}

std::vector<Entry> decode(std::string_view in) {
  check_header(in, 32);
  CHECK(in.substr(0, 8) == "OPJLOG1\n");
  in.remove_prefix(8);
  CHECK(take<uint32_t>(in) == 2);
  const uint32_t block_bytes = take<uint32_t>(in);
  CHECK(take<uint64_t>(in) > 0);
  CHECK(take<uint32_t>(in) == 0);
  take<uint32_t>(in);
  std::vector<Entry> rows;
  uint64_t next_sequence = 0;
  while (!in.empty()) {
    check_header(in, 40);
    CHECK(take<uint32_t>(in) == 0x4B4C4250);
    const int thread = take<uint16_t>(in);
    CHECK(take<uint16_t>(in) == 0);
    const uint32_t records = take<uint32_t>(in);
    const uint32_t size = take<uint32_t>(in);
    const uint64_t base_ns = take<uint64_t>(in);
    const uint32_t checksum = take<uint32_t>(in);
    take<uint32_t>(in);
    CHECK(take<uint64_t>(in) == next_sequence++);
    REQUIRE(in.size() >= size);
    CHECK(size <= block_bytes);
    const std::string_view payload = in.substr(0, size);
    CHECK(checksum == crc32(0, reinterpret_cast<const Bytef*>(payload.data()), size));
    decode_block(thread, base_ns, records, payload, rows);
    in.remove_prefix(size);
  }
  return rows;
}

class LogFile {
 public:
  LogFile() {
    const Status status = OperationLog::create(path_, &log_);
    REQUIRE_MESSAGE(status.is_ok(), status.message());
  }
  ~LogFile() { std::filesystem::remove(path_); }
  OperationLog& log() { return *log_; }
  std::string bytes() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("opjoule-" + std::to_string(getpid()) + ".oplog");
  std::unique_ptr<OperationLog> log_;
};

TEST_CASE("operations read back as they were added, over many blocks") {
  LogFile file;
  OperationLogWriter writer(file.log(), 3, 1000);
  std::vector<Entry> expected;
  int64_t at = 1000;
  for (int i = 0; i < 100'000; ++i) {
    const int64_t start = at + (i % 7 == 0 ? i * 1000 : i % 200);
    at = start + (i % 11 == 0 ? int64_t{i} * i : i % 300);
    const Entry row{3, i % 6, i % 5 != 0, start, at, static_cast<uint64_t>(i % 97 == 0 ? i : 100)};
    writer.add(static_cast<OperationKind>(row.kind), row.ok, row.start_ns, row.end_ns, row.bytes);
    expected.push_back(row);
  }
  REQUIRE(writer.flush().is_ok());
  CHECK(decode(file.bytes()) == expected);
}

TEST_CASE("the largest numbers fit at the end of a block") {
  LogFile file;
  OperationLogWriter writer(file.log(), 0, 0);
  for (int i = 0; i < 20'000; ++i)
    writer.add(OperationKind::kScan, true, i * (int64_t{1} << 48),
               i * (int64_t{1} << 48) + (int64_t{1} << 47),
               UINT64_MAX - 1 - static_cast<uint64_t>(i % 2));
  REQUIRE(writer.flush().is_ok());
  CHECK(decode(file.bytes()).size() == 20'000);
}

TEST_CASE("short operations take three bytes, ordinary ones at most six, a block's header apart") {
  for (const auto& [gap, duration, most] :
       {std::tuple{100, 100, 3.1}, std::tuple{1000, 10'000, 5.1},
        std::tuple{10'000, 1'000'000, 6.2}}) {
    LogFile file;
    OperationLogWriter writer(file.log(), 0, 0);
    int64_t at = 0;
    for (int i = 0; i < 100'000; ++i) {
      writer.add(OperationKind::kRead, true, at + gap, at + gap + duration, 1000);
      at += gap + duration;
    }
    REQUIRE(writer.flush().is_ok());
    CHECK(static_cast<double>(file.bytes().size()) / 100'000 < most);
  }
}

TEST_CASE(
    "an operation is in the file a quarter of a second after it ended, and later only if nothing "
    "else came") {
  LogFile file;
  OperationLogWriter writer(file.log(), 0, 0);
  for (int64_t at_ms = 0; at_ms < 1000; ++at_ms) {
    const int64_t end = (at_ms + 1) * 1'000'000;
    writer.add(OperationKind::kRead, true, end - 5000, end, 1000);
    const std::vector<Entry> rows = decode(file.bytes());
    CHECK(end - (rows.empty() ? 0 : rows.back().end_ns) <= OperationLog::kBlockNs);
  }
  writer.add(OperationKind::kRead, true, int64_t{2'000'000'000}, int64_t{2'000'005'000}, 1000);
  CHECK(decode(file.bytes()).size() == 1001);
}

TEST_CASE("threads write whole blocks beside one another") {
  LogFile file;
  std::vector<std::thread> threads;
  for (uint16_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      OperationLogWriter writer(file.log(), thread, 0);
      for (int i = 0; i < 50'000; ++i)
        writer.add(OperationKind::kRead, true, i * 10, i * 10 + 5, thread);
      CHECK(writer.flush().is_ok());
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<Entry> rows = decode(file.bytes());
  CHECK(rows.size() == 200'000);
  CHECK(std::all_of(rows.begin(), rows.end(), [](const Entry& row) {
    return row.bytes == static_cast<uint64_t>(row.thread);
  }));
}

TEST_CASE("a folder that is not there is named; a full device is told") {
  std::unique_ptr<OperationLog> log;
  const Status missing = OperationLog::create("/nowhere/a.oplog", &log);
  CHECK(missing.code() == StatusCode::kBadInput);
  CHECK(missing.message().find("/nowhere/a.oplog") != std::string::npos);
  CHECK(OperationLog::create("/dev/full", &log).code() == StatusCode::kNoSpace);
}

}  // namespace
}  // namespace opjoule
