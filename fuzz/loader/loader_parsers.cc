// What the loader reads: property files, histograms of field lengths, traces; and the operation
// log, which it writes: whatever the operations, a reader finds them again.
#include "fuzz/loader/loader_parsers.h"

#include <zlib.h>

#include <cstring>
#include <span>
#include <string_view>

#include "fuzz/loader/memory_file.h"
#include "loader/properties.h"
#include "oplog/operation_log.h"
#include "workload/settings.h"
#include "workload/trace.h"

namespace opjoule::fuzz {
namespace {

// Settings of a file that anyone may have written, as the loader takes them. An input's size
// chooses what is checked: the search for a key like an unknown one takes ten times as long as all
// else.
void check_settings(const Properties& properties, size_t size) {
  if (size % 4 == 0) static_cast<void>(properties.check_known(workload_rules()));
  WorkloadSettings settings;
  const Phase phase = size % 2 == 0 ? Phase::kRun : Phase::kLoad;
  if (!WorkloadSettings::from(properties, phase, 0, &settings).is_ok()) return;
  expect(settings.field_count > 0 && settings.threads > 0, "settings that hold are usable");
  expect(settings.scan_minimum <= settings.scan_maximum, "a scan's least is below its most");
}

// Names of files that the properties would open are taken out: no other file is read.
bool names_a_file(std::string_view text) {
  return text.find("histogram") != std::string_view::npos ||
         text.find("valuetext") != std::string_view::npos ||
         text.find('\\') != std::string_view::npos;
}

// Where the trace's own form has no doubt, an operation written again is the same operation.
void check_written_again(const WorkloadSettings& settings, const Operation& operation) {
  std::string text;
  append_trace(settings, operation, text);
  expect(text.ends_with('\n'), "an operation is written as whole lines");
  std::string_view line = text;
  line = line.substr(0, line.find('\n'));
  TraceParser parser(settings);
  Operation again;
  TraceFault fault;
  expect(parser.parse(line, &again, &fault), "what was written can be read");
  expect(again.key == operation.key && again.kind == operation.kind, "it is the same operation");
  expect(again.scan_length == operation.scan_length, "it asks for as many rows");
}

uint64_t take(std::string_view& in, size_t bytes) {
  expect(in.size() >= bytes, "the log ends at the end of a number");
  uint64_t value = 0;
  std::memcpy(&value, in.data(), bytes);
  in.remove_prefix(bytes);
  return value;
}

uint64_t take_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint64_t byte = take(in, 1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
    expect(shift < 63, "a number has at most ten bytes");
  }
}

struct Logged {
  uint8_t kind_and_outcome;
  int64_t start_ns;
  int64_t end_ns;
  uint64_t bytes;
  bool operator==(const Logged&) const = default;
};

// The operations of a block, by the grammar of docs/reference/operation-log.md.
void read_block(std::string_view payload, uint64_t triples, int64_t at_ns,
                std::vector<Logged>* out) {
  uint64_t sizes[8] = {};
  while (triples-- > 0) {
    const uint64_t tag = take_varint(payload);
    const uint64_t second = take_varint(payload);
    const uint64_t third = take_varint(payload);
    if ((tag & 0x10) != 0) {
      sizes[tag & 7] = second;
      continue;
    }
    const int64_t start_ns = at_ns + static_cast<int64_t>(second);
    at_ns = start_ns + static_cast<int64_t>(third);
    out->push_back({static_cast<uint8_t>(tag), start_ns, at_ns, sizes[tag & 7]});
  }
  expect(payload.empty(), "a block ends with its last operation");
}

std::vector<Logged> read_log(std::string_view in) {
  std::vector<Logged> found;
  in.remove_prefix(32);
  while (!in.empty()) {
    in.remove_prefix(8);
    const uint64_t triples = take(in, 4);
    const uint64_t size = take(in, 4);
    const auto base_ns = static_cast<int64_t>(take(in, 8));
    const uint64_t checksum = take(in, 4);
    in.remove_prefix(12);
    const std::string_view payload = in.substr(0, size);
    expect(payload.size() == size, "a block is whole");
    expect(crc32(0, reinterpret_cast<const Bytef*>(payload.data()), static_cast<uInt>(size)) ==
               checksum,
           "a block's checksum holds");
    read_block(payload, triples, base_ns, &found);
    in.remove_prefix(size);
  }
  return found;
}

}  // namespace

void take_properties(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  file.fill(data, size);
  Properties properties;
  if (!properties.load_file(file.path()).is_ok()) return;
  if (!names_a_file({reinterpret_cast<const char*>(data), size})) check_settings(properties, size);
}

void take_histogram(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  file.fill(data, size);
  Properties properties;
  properties.set("fieldlengthdistribution", "histogram");
  properties.set("fieldlengthhistogram", file.path());
  FieldLengths lengths;
  if (!FieldLengths::from(properties, &lengths).is_ok()) return;
  Random random(size, 0);
  for (int i = 0; i < 4; ++i)
    expect(lengths.draw(random) <= lengths.maximum(), "a length drawn is at most the longest");
}

void take_trace(const uint8_t* data, size_t size) {
  static const WorkloadSettings settings;
  static const MemoryFile file;
  file.fill(data, size);
  std::unique_ptr<TraceFile> trace;
  expect(TraceFile::open(file.path(), settings, false, &trace).is_ok(), "a file can be opened");
  std::vector<Operation> operations(3);
  Status status = trace->await_operation();
  size_t lines = 0;
  while (status.is_ok()) {
    const size_t count = trace->next(operations, status);
    if (count == 0) break;
    lines += count;
    for (size_t i = 0; i < count; ++i) check_written_again(settings, operations[i]);
  }
  expect(lines + trace->skipped_lines() <= size + 1, "no line is read twice");
}

void take_operation_log(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  std::vector<Logged> expected;
  {
    std::unique_ptr<OperationLog> log;
    expect(OperationLog::create(file.path(), &log).is_ok(), "a log can be made");
    int64_t at_ns = 1;
    OperationLogWriter writer(*log, 3, at_ns);
    for (Bytes in(data, size); !in.empty();) {
      const uint8_t head = in.byte();
      // Lengths of up to 6 bytes each: an operation may last and wait as long as a board runs.
      const int64_t start_ns =
          at_ns + static_cast<int64_t>(in.number(head >> 4 & 3) << (head >> 6) * 8);
      at_ns = start_ns + static_cast<int64_t>(in.number(head >> 6 & 3));
      const uint64_t bytes = in.number(in.byte() & 7);
      const auto kind = static_cast<OperationKind>((head & 7) % kOperationKinds);
      const bool ok = (head & 8) != 0;
      writer.add(kind, ok, start_ns, at_ns, bytes);
      expected.push_back(
          {static_cast<uint8_t>(static_cast<int>(kind) | (ok ? 8 : 0)), start_ns, at_ns, bytes});
    }
    expect(writer.flush().is_ok(), "the log is written");
  }
  expect(read_log(file.bytes()) == expected, "the operations read are those written");
}

}  // namespace opjoule::fuzz
