#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>

#include "board/stop_signal.h"
#include "loader/system_error.h"
#include "workload/trace.h"

namespace opjoule {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// A line may be longer by this than a row of the properties: the lengths in a trace are its own.
constexpr uint64_t kLongestLine = 64 << 20;
constexpr size_t kLongestVerb = 6;
constexpr uint64_t kLargestTakeBytes = 1 << 20;  // bytes of lines taken at once by one thread
constexpr int kPollMs = 100;  // a signal ends a wait for input after this at most

// What YCSB prints beside its operations.
bool is_skipped(std::string_view line) {
  constexpr std::string_view kMarks = "*\"[#";
  return line.empty() || kMarks.find(line[0]) != std::string_view::npos;
}

// Whether this can be the beginning of a line of a trace: by its first bytes input is recognised
// that is no trace and may never end (a device, a database file).
bool may_begin_line(std::string_view start) {
  for (const std::string_view verb : {"READ ", "UPDATE ", "INSERT ", "SCAN ", "DELETE "})
    if (verb.starts_with(start.substr(0, verb.size()))) return true;
  return is_skipped(start);
}

bool input_is_ready(int fd, int timeout_ms) {
  pollfd input{fd, POLLIN, 0};
  return ::poll(&input, 1, timeout_ms) > 0;
}

// Does not wait for the writer of a FIFO: read_more() does, which a signal can end.
int open_input(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

}  // namespace

Status TraceFile::open(const std::string& path, const WorkloadSettings& settings, bool load_only,
                       std::unique_ptr<TraceFile>* out) {
  const bool is_stdin = path == "-";
  const int fd = is_stdin ? STDIN_FILENO : open_input(path);
  if (fd < 0) return system_error("trace " + path + ": cannot be opened");
  out->reset(new TraceFile(fd, is_stdin ? "on stdin" : path, settings, load_only));
  return Status::ok();
}

TraceFile::TraceFile(int fd, std::string name, const WorkloadSettings& settings, bool load_only)
    : fd_(fd),
      name_(std::move(name)),
      load_only_(load_only),
      longest_line_(kLongestLine +
                    uint64_t{settings.field_count} * (settings.field_lengths.maximum() + 16)),
      parser_(settings) {
  buffer_.resize(2 * kReadBytes);
}

TraceFile::~TraceFile() {
  if (fd_ != STDIN_FILENO) ::close(fd_);
}

// False at the end of the input, on an error, or when stopped.
bool TraceFile::read_more(Status& status) {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(buffer_.size() * 2);
  while (!stop_flag().load(std::memory_order_relaxed)) {
    if (!input_is_ready(fd_, kPollMs)) continue;
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = system_error("trace " + name_ + ": cannot be read");
    if (got <= 0) at_end_ = true;
    if (got > 0) end_ += static_cast<size_t>(got);
    return got > 0;
  }
  at_end_ = true;
  return false;
}

// may_wait: wait for input where no whole line is there yet.
bool TraceFile::take_line(std::string_view* line, bool may_wait, Status& status) {
  size_t searched = begin_;
  const char* newline = nullptr;
  while (true) {
    newline =
        static_cast<const char*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    if (newline != nullptr || at_end_) break;
    if (!may_wait && !input_is_ready(fd_, 0)) return false;
    const size_t pending = end_ - begin_;
    if (pending > kLongestVerb && !may_begin_line({buffer_.data() + begin_, pending})) break;
    if (pending > longest_line_) {
      status = too_long();
      return false;
    }
    if (!read_more(status) && !status.is_ok()) return false;
    searched = pending;
  }
  unfinished_ = newline == nullptr;
  const size_t length =
      unfinished_ ? end_ - begin_ : static_cast<size_t>(newline - (buffer_.data() + begin_));
  if (unfinished_ && length == 0) return false;
  *line = std::string_view(buffer_.data() + begin_, length);
  ++line_number_;
  line_offset_ = next_offset_;
  const size_t consumed = length + (unfinished_ ? 0 : 1);
  next_offset_ += consumed;
  begin_ += consumed;
  if (line->ends_with('\r')) line->remove_suffix(1);
  return true;
}

Status TraceFile::await_operation() {
  const std::lock_guard lock(mutex_);
  Status status;
  std::string_view line;
  while (take_line(&line, true, status)) {
    if (is_skipped(line)) {
      ++skipped_;
      continue;
    }
    // Not taken yet: next() reads it again.
    begin_ -= static_cast<size_t>(next_offset_ - line_offset_);
    next_offset_ = line_offset_;
    --line_number_;
    break;
  }
  return status;
}

Status TraceFile::too_long() const {
  return {StatusCode::kBadInput,
          "trace " + name_ + ", line " + std::to_string(line_number_ + 1) + ": has more than " +
              std::to_string(longest_line_ >> 20) +
              " MiB without an end; set fieldcount and fieldlength to those of the trace if it is "
              "one"};
}

Status TraceFile::bad_line(const TraceFault& fault, bool unfinished) const {
  return {StatusCode::kBadInput, "trace " + name_ + ", line " + std::to_string(line_number_) +
                                     ", byte " + std::to_string(line_offset_ + fault.column) +
                                     ": expected " + fault.expected +
                                     (unfinished ? "; the trace ends inside this line" : "")};
}

size_t TraceFile::next(std::span<Operation> out, Status& status) {
  const std::lock_guard lock(mutex_);
  status = fault_;
  if (!status.is_ok()) return 0;
  size_t count = 0;
  uint64_t bytes = 0;
  std::string_view line;
  while (count < out.size() && bytes < kLargestTakeBytes && take_line(&line, count == 0, status)) {
    bytes += line.size();
    if (is_skipped(line)) {
      ++skipped_;
      continue;
    }
    TraceFault fault;
    if (parser_.parse(line, &out[count], &fault)) {
      const bool cut_off = unfinished_ && out[count].kind == OperationKind::kRemove;
      const bool wanted = !load_only_ || out[count].kind == OperationKind::kInsert;
      if (wanted && !cut_off) {
        ++count;
        continue;
      }
      fault = wanted ? TraceFault{line.size(), "a line end, as the key may go on"}
                     : TraceFault{0, "INSERT, as every operation of a load"};
    }
    // A stop in the middle of a line is no error of the stream.
    if (unfinished_ && stop_flag().load(std::memory_order_relaxed)) break;
    fault_ = bad_line(fault, unfinished_ && at_end_);
    break;
  }
  // Operations before the bad line are done first.
  if (count == 0 && status.is_ok()) status = fault_;
  return count;
}

}  // namespace opjoule
