#include "workload/trace.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "workload/generator.h"

namespace opjoule {
namespace {

WorkloadSettings settings(std::initializer_list<const char*> assignments = {}) {
  Properties properties;
  properties.set("operationcount", "1000");
  properties.set("recordcount", "1000");
  for (const char* assignment : assignments) REQUIRE(properties.set(assignment).is_ok());
  WorkloadSettings out;
  const Status status = WorkloadSettings::from(properties, Phase::kRun, 0, &out);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  return out;
}

class Trace {
 public:
  explicit Trace(const std::string& text, const WorkloadSettings& workload,
                 bool load_only = false) {
    std::ofstream(path_, std::ios::binary) << text;
    REQUIRE(TraceFile::open(path_, workload, load_only, &file_).is_ok());
  }
  ~Trace() { std::filesystem::remove(path_); }
  // Every operation up to the end or the first fault.
  std::vector<Operation> all(Status& status) {
    std::vector<Operation> operations;
    std::vector<Operation> batch(3);
    while (const size_t count = file_->next(batch, status))
      operations.insert(operations.end(), batch.begin(), batch.begin() + static_cast<long>(count));
    return operations;
  }
  TraceFile& file() { return *file_; }

 private:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("opjoule-" + std::to_string(getpid()) + ".trace");
  std::unique_ptr<TraceFile> file_;
};

// Lines as YCSB 0.17.0 printed them.
constexpr const char* kYcsbOutput =
    "***************** properties *****************\n"
    "\"fieldcount\"=\"2\"\n"
    "**********************************************\n"
    "INSERT usertable user5932668945200486555 [ field1=3$\"8/>;>b\"22>04,[w%2 "
    "field0=>Iu?:.-K51P{8'~*Bi:, ]\n"
    "SCAN usertable user2644479767202980425 386 [ field0 ]\n"
    "READ usertable user4876795174170569834 [ <all fields>]\n"
    "UPDATE usertable user6284781860667377211 [ field0=+<x&Ha<De.\"r/]{6[=$= ]\n"
    "DELETE usertable user1\n"
    "[OVERALL], RunTime(ms), 30\n";

TEST_CASE("what YCSB's basic binding prints is read, and what is around it skipped") {
  const WorkloadSettings workload = settings({"fieldcount=2"});
  Trace trace(kYcsbOutput, workload);
  Status status;
  const std::vector<Operation> operations = trace.all(status);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  REQUIRE(operations.size() == 5);
  CHECK(trace.file().skipped_lines() == 4);
  CHECK(operations[0].kind == OperationKind::kInsert);
  CHECK(operations[0].key == "user5932668945200486555");
  CHECK(operations[0].whole);
  CHECK(operations[0].values.find(0) == ">Iu?:.-K51P{8'~*Bi:,");
  CHECK(operations[0].values.find(1) == "3$\"8/>;>b\"22>04,[w%2");
  CHECK(operations[1].kind == OperationKind::kScan);
  CHECK(operations[1].scan_length == 386);
  CHECK_FALSE(operations[1].fields.all);
  CHECK(operations[2].kind == OperationKind::kRead);
  CHECK(operations[2].fields.all);
  CHECK(operations[3].kind == OperationKind::kUpdate);
  CHECK(operations[3].values.find(0) == "+<x&Ha<De.\"r/]{6[=$=");
  CHECK_FALSE(operations[3].whole);
  CHECK(operations[4].kind == OperationKind::kRemove);
  CHECK(operations[4].key == "user1");
}

TEST_CASE("every operation a workload makes reads back from its trace") {
  const WorkloadSettings workload =
      settings({"readproportion=0.2", "updateproportion=0.2", "insertproportion=0.2",
                "scanproportion=0.2", "removeproportion=0.2", "readallfields=false",
                "fieldlengthdistribution=uniform", "minfieldlength=0", "fieldlength=40"});
  KeySpace state(workload);
  RunGenerator generator(state, 0);
  std::vector<Operation> written;
  std::vector<Operation> batch(16);
  std::string text;
  Status status;
  while (written.size() < 3000) {
    const size_t count = generator.next(batch, 0, status);
    for (size_t i = 0; i < count; ++i) {
      append_trace(workload, batch[i], text);
      written.push_back(batch[i]);
      generator.done(batch[i]);
    }
  }
  Trace trace(text, workload);
  const std::vector<Operation> read = trace.all(status);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  REQUIRE(read.size() == written.size());
  size_t different = 0;
  for (size_t i = 0; i < read.size(); ++i) {
    bool same = read[i].kind == written[i].kind && read[i].key == written[i].key;
    if (read[i].kind == OperationKind::kScan || read[i].kind == OperationKind::kRead)
      same = same && read[i].fields.number == written[i].fields.number;
    if (read[i].kind == OperationKind::kScan)
      same = same && read[i].scan_length == written[i].scan_length;
    if (read[i].kind == OperationKind::kInsert || read[i].kind == OperationKind::kUpdate)
      same = same && read[i].values.stored() == written[i].values.stored();
    if (!same) ++different;
  }
  CHECK(different == 0);
}

TEST_CASE("a read-modify-write is a read and an update") {
  const WorkloadSettings workload = settings();
  Operation operation;
  operation.kind = OperationKind::kReadModifyWrite;
  operation.key = "user1";
  operation.values.reset(std::array<uint16_t, 1>{2}, std::array<uint32_t, 1>{0});
  std::string text;
  append_trace(workload, operation, text);
  CHECK(text == "READ usertable user1 [ <all fields>]\nUPDATE usertable user1 [ field2= ]\n");
}

TEST_CASE(
    "values may hold spaces, brackets, equal signs, and what looks like another field's name") {
  const WorkloadSettings workload = settings({"fieldcount=2"});
  Trace trace("INSERT usertable k [ field0= ] field0=x=y [ field1= field7 ] ]\n", workload);
  Status status;
  const std::vector<Operation> operations = trace.all(status);
  REQUIRE_MESSAGE(status.is_ok(), status.message());
  REQUIRE(operations.size() == 1);
  CHECK(operations[0].values.find(0) == " ] field0=x=y [");
  CHECK(operations[0].values.find(1) == " field7 ]");
}

TEST_CASE("the prefix of field names may end in digits, or be empty") {
  for (const std::string prefix : {"f1", "1", ""}) {
    const std::string property = "fieldnameprefix=" + prefix;
    const WorkloadSettings workload = settings({"fieldcount=12", property.c_str()});
    Trace trace("INSERT usertable k [ " + prefix + "0=a " + prefix + "11=b ]\n", workload);
    Status status;
    const std::vector<Operation> operations = trace.all(status);
    REQUIRE_MESSAGE(status.is_ok(), status.message());
    REQUIRE(operations.size() == 1);
    CHECK(operations[0].values.find(0) == "a");
    CHECK(operations[0].values.find(11) == "b");
  }
}

TEST_CASE(
    "a bad line is told with line, byte and what was expected; what stands before it is kept") {
  const WorkloadSettings workload = settings({"fieldcount=2", "table=t"});
  const std::pair<const char*, const char*> bad[] = {
      {"INSRT t k [ field0=a ]\n",
       "line 2, byte 11: expected READ, UPDATE, INSERT, SCAN or DELETE"},
      {"INSERT\n", "line 2, byte 11: expected READ"},
      {"INSERT t\n", "byte 19: expected a table name and a space"},
      {"INSERT t \n", "byte 20: expected a key"},
      {"INSERT t k\n", "byte 21: expected ' [ '"},
      {"INSERT t k [ field0=a\n", "byte 32: expected ' ]' at the end of the line"},
      {"INSERT t k [ field0=a", "the trace ends inside this line"},
      {"INSERT t k [ name=a ]\n", "byte 24: expected field with a number and '='"},
      {"INSERT t k [ ]\n", "expected field with a number"},
      {"INSERT t k [ field2=a ]\n", "byte 24: expected a field of the 2 there are"},
      {"READ t k [ field2 ]\n", "byte 22: expected a field of the 2 there are"},
      {"READ t k [ <all fields>] \n", "byte 35: expected the end of the line"},
      {"READ t k [ field1\n", "expected a field name and a space"},
      {"SCAN t k [ <all fields>]\n", "expected a number of records"},
      {"SCAN t k 5x [ <all fields>]\n", "expected a number of records"},
      {"DELETE t k x\n", "byte 21: expected the end of the line"},
      {"DELETE t k",
       "byte 21: expected a line end, as the key may go on; the trace ends inside this line"},
      {"READ other k [ <all fields>]\n", "byte 16: expected table t (property table), not other"},
  };
  for (const auto& [line, expected] : bad) {
    Trace trace(std::string("DELETE t b\n") + line, workload);  // 11 bytes before the bad line
    Status status;
    CHECK(trace.all(status).size() == 1);
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find(expected) != std::string::npos, status.message());
  }
}

TEST_CASE("a load takes inserts alone") {
  const WorkloadSettings workload = settings();
  Trace trace("READ usertable k [ <all fields>]\n", workload, true);
  Status status;
  CHECK(trace.all(status).empty());
  CHECK(status.message().find("line 1, byte 0: expected INSERT") != std::string::npos);
}

TEST_CASE("a stream is read in pieces of any size, lines longer than a buffer included") {
  const WorkloadSettings workload = settings({"fieldcount=1", "fieldlength=300000"});
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::thread writer([&] {
    const std::string line =
        "INSERT usertable key [ field0=" + std::string(300'000, 'v') + " ]\r\n";
    for (int i = 0; i < 5; ++i)
      for (size_t at = 0; at < line.size(); at += 7919)
        if (write(ends[1], line.data() + at, std::min<size_t>(7919, line.size() - at)) < 0) return;
    close(ends[1]);
  });
  std::unique_ptr<TraceFile> file;
  REQUIRE(
      TraceFile::open("/proc/self/fd/" + std::to_string(ends[0]), workload, true, &file).is_ok());
  std::vector<Operation> batch(16);
  Status status;
  size_t count = 0;
  while (const size_t got = file->next(batch, status)) {
    for (size_t i = 0; i < got; ++i) CHECK(batch[i].values.find(0).size() == 300'000);
    count += got;
  }
  writer.join();
  close(ends[0]);
  CHECK(status.is_ok());
  CHECK(count == 5);
}

TEST_CASE("a stream's first operation is waited for and not lost; its writer may come later") {
  const WorkloadSettings workload = settings({"fieldcount=1"});
  const std::string fifo = "/tmp/opjoule-trace-" + std::to_string(getpid());
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  std::unique_ptr<TraceFile> file;
  REQUIRE(TraceFile::open(fifo, workload, false, &file).is_ok());
  std::thread writer([&] {
    std::ofstream(fifo)
        << "*** properties ***\n"
           "READ usertable one [ <all fields>]\nREAD usertable two [ <all fields>]\n";
  });
  CHECK(file->await_operation().is_ok());
  CHECK(file->skipped_lines() == 1);
  std::vector<Operation> batch(1);
  Status status;
  std::vector<std::string> keys;
  while (file->next(batch, status) == 1) keys.push_back(batch[0].key);
  writer.join();
  unlink(fifo.c_str());
  CHECK(status.is_ok());
  CHECK(keys == std::vector<std::string>{"one", "two"});
}

TEST_CASE("a stream that ends before its first operation is empty") {
  const WorkloadSettings workload = settings();
  Trace trace("# nothing\n", workload);
  CHECK(trace.file().await_operation().is_ok());
  Status status;
  CHECK(trace.all(status).empty());
  CHECK(status.is_ok());
}

TEST_CASE("damaged lines are parsed or told, at a byte of theirs, and never more than that") {
  const WorkloadSettings workload = settings({"fieldcount=2", "table=t"});
  const std::string_view lines[] = {"INSERT t k [ field0=aa field1=bb ]",
                                    "READ t k [ <all fields>]",
                                    "READ t k [ field1 ]",
                                    "SCAN t k 12 [ field0 ]",
                                    "DELETE t k",
                                    "UPDATE t k [ field1=x ]"};
  constexpr std::string_view kPieces[] = {
      " ", "=", "]", "[ ", "field", "field99999=", "0", "\0", "<all fields>]", "\xff"};
  TraceParser parser(workload);
  Random random(1, 0);
  Operation operation;
  size_t outside = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string line(lines[random.below(std::size(lines))]);
    for (uint64_t edits = 1 + random.below(3); edits > 0; --edits) {
      const size_t at = random.below(line.size() + 1);
      const std::string_view piece = kPieces[random.below(std::size(kPieces))];
      line.replace(at, random.below(4), piece);
    }
    TraceFault fault;
    if (!parser.parse(line, &operation, &fault) &&
        (fault.column > line.size() || fault.expected.empty()))
      ++outside;
  }
  CHECK(outside == 0);
}

TEST_CASE("a trace that is not there is named") {
  const WorkloadSettings workload = settings();
  std::unique_ptr<TraceFile> file;
  CHECK(TraceFile::open("/nowhere/t", workload, false, &file).message().find("/nowhere/t") !=
        std::string::npos);
}

}  // namespace
}  // namespace opjoule
