// Operations as text, in the form YCSB's basic binding prints them:
//
//   INSERT usertable user6284781860667377211 [ field0=... field1=... ]
//   UPDATE usertable user6284781860667377211 [ field3=... ]
//   READ usertable user6284781860667377211 [ <all fields>]
//   READ usertable user6284781860667377211 [ field3 ]
//   SCAN usertable user6284781860667377211 25 [ <all fields>]
//   DELETE usertable user6284781860667377211
//
// Lines that begin with '*', '"', '[' or '#' (what YCSB prints around its operations) and empty
// lines are skipped and counted. The table is that of the properties. Values hold no newline; a
// field's value ends where the name of the next field and '=' follow.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "loader/status.h"
#include "workload/settings.h"
#include "workload/source.h"

namespace opjoule {

// What is wrong with a line: at which byte of it, and what was expected there.
struct TraceFault {
  size_t column = 0;  // from 0
  std::string expected;
};

// Thread safety: none; a parser reuses its buffers.
class TraceParser {
 public:
  explicit TraceParser(const WorkloadSettings& settings) : settings_(settings) {}
  // False with `fault` where the line is not an operation. `line` is without its newline.
  bool parse(std::string_view line, Operation* out, TraceFault* fault);

 private:
  struct Field {
    uint16_t number;
    size_t name_at;
    size_t value_at;
    size_t value_end;
  };
  bool parse_values(Operation* out, TraceFault* fault);
  bool parse_choice(Operation* out, TraceFault* fault);
  bool find_fields(TraceFault* fault);
  bool is_new_field(size_t equals, Field* field) const;
  bool take(std::string_view text);
  bool take_word(std::string_view* word);
  bool fail(TraceFault* fault, std::string expected) const;

  const WorkloadSettings& settings_;
  std::string_view line_;
  size_t at_ = 0;
  std::vector<Field> fields_;
  std::vector<uint16_t> numbers_;
  std::vector<uint32_t> lengths_;
};

// A trace shared by the threads of a phase: each takes the next few operations. Memory is that of
// the longest line; one that never ends is an error at 64 MiB and a row. Thread safety: next()
// from any thread.
class TraceFile {
 public:
  // path "-" is stdin; a FIFO may be without a writer still. load_only: every operation has to be
  // an insert. kBadInput with the path.
  static Status open(const std::string& path, const WorkloadSettings& settings, bool load_only,
                     std::unique_ptr<TraceFile>* out);
  ~TraceFile();
  // Up to out.size() operations; fewer rather than wait for more input once there is one; 0 at the
  // end. kBadInput with line number, byte offset and what was expected.
  size_t next(std::span<Operation> out, Status& status);
  // Waits for the line of the first operation, or the end, so that the start of the writer (a JVM)
  // is no part of the phase. Called before the threads start.
  Status await_operation();
  [[nodiscard]] uint64_t skipped_lines() const { return skipped_; }

 private:
  TraceFile(int fd, std::string name, const WorkloadSettings& settings, bool load_only);
  bool take_line(std::string_view* line, bool may_wait, Status& status);
  bool read_more(Status& status);
  [[nodiscard]] Status too_long() const;
  Status bad_line(const TraceFault& fault, bool unfinished) const;

  std::mutex mutex_;
  int fd_;
  std::string name_;
  bool load_only_;
  uint64_t longest_line_;
  TraceParser parser_;
  std::string buffer_;
  size_t begin_ = 0;  // of what is not parsed yet
  size_t end_ = 0;
  bool at_end_ = false;
  uint64_t line_number_ = 0;
  uint64_t line_offset_ = 0;  // bytes before the present line
  uint64_t next_offset_ = 0;
  bool unfinished_ = false;  // the present line has no newline
  uint64_t skipped_ = 0;
  Status fault_;  // the first bad line; nothing is read after it
};

// One thread's end of it.
class TraceSource : public OperationSource {
 public:
  explicit TraceSource(TraceFile& file) : file_(file) {}
  size_t next(std::span<Operation> out, int64_t, Status& status) override {
    return file_.next(out, status);
  }
  [[nodiscard]] bool is_stream() const override { return true; }

 private:
  TraceFile& file_;
};

// Appends an operation's line or lines to `out`: a read-modify-write is a READ and an UPDATE, as
// YCSB's binding sees it.
void append_trace(const WorkloadSettings& settings, const Operation& operation, std::string& out);

}  // namespace opjoule
