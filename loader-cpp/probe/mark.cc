#include "probe/mark.h"

#include <charconv>
#include <initializer_list>
#include <limits>

namespace opjoule {
namespace {

Status bad(std::string why) { return {StatusCode::kBadInput, std::move(why)}; }

// Takes the next word off `line`; empty at the end.
std::string_view take_word(std::string_view* line) {
  const size_t start = std::min(line->find_first_not_of(' '), line->size());
  line->remove_prefix(start);
  const size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

bool is_name(std::string_view word) {
  if (word.empty() || word.size() > kMarkNameMax) return false;
  for (const char c : word) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-') return false;
  }
  return true;
}

Status take_name(std::string_view* line, const std::string& what, std::string* out) {
  const std::string_view word = take_word(line);
  if (!is_name(word)) return bad(what + " is not 1 to 63 letters, digits, '_', '.' or '-'");
  *out = word;
  return Status::ok();
}

Status take_number(std::string_view* line, const std::string& what, int64_t* out) {
  const std::string_view word = take_word(line);
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), *out);
  if (word.empty() || parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() ||
      *out < 0)
    return bad(what + " is not a whole number");
  return Status::ok();
}

Status check_past(int64_t board_ns, int64_t arrival_board_ns) {
  if (board_ns <= arrival_board_ns) return Status::ok();
  return bad("a time lies in the future: it must be of CLOCK_MONOTONIC, in ns");
}

Status parse_phase(std::string_view line, int64_t arrival_ns, Mark* out) {
  const std::string_view which = take_word(&line);
  if (which != "begin" && which != "end") return bad("phase needs begin or end");
  out->kind = which == "begin" ? MarkKind::kPhaseBegin : MarkKind::kPhaseEnd;
  if (Status status = take_name(&line, "the phase's name", &out->name); !status.is_ok())
    return status;
  out->start_ns = arrival_ns;
  if (line.find_first_not_of(' ') != std::string_view::npos)
    if (Status status = take_number(&line, "the phase's time", &out->start_ns); !status.is_ok())
      return status;
  out->end_ns = out->start_ns;
  if (!take_word(&line).empty()) return bad("phase has more than a name and a time");
  return check_past(out->start_ns, arrival_ns);
}

Status parse_operation(std::string_view line, int64_t arrival_ns, Mark* out) {
  out->kind = MarkKind::kOperation;
  std::string kind;
  int64_t duration_ns = 0;
  int64_t bytes = 0;
  if (Status status = take_name(&line, "the operation's kind", &kind); !status.is_ok())
    return status;
  if (Status status = take_number(&line, "the operation's start", &out->start_ns); !status.is_ok())
    return status;
  if (Status status = take_number(&line, "the operation's duration", &duration_ns); !status.is_ok())
    return status;
  if (line.find_first_not_of(' ') != std::string_view::npos)
    if (Status status = take_number(&line, "the operation's bytes", &bytes); !status.is_ok())
      return status;
  const std::string_view outcome = take_word(&line);
  if (!outcome.empty() && outcome != "ok" && outcome != "failed")
    return bad("the operation's outcome is neither ok nor failed");
  if (!take_word(&line).empty()) return bad("operation has more than five parts");
  if (duration_ns > std::numeric_limits<int64_t>::max() - out->start_ns)
    return bad("the operation's duration is too long");
  out->end_ns = out->start_ns + duration_ns;
  out->detail = kind + " " + std::to_string(bytes) + (outcome == "failed" ? " failed" : " ok");
  return check_past(out->end_ns, arrival_ns);
}

Status parse_event(std::string_view line, int64_t arrival_ns, Mark* out) {
  out->kind = MarkKind::kEvent;
  if (Status status = take_name(&line, "the event's name", &out->name); !status.is_ok())
    return status;
  for (const char* own : {"sync-edge", "load-change", "phase-begin", "phase-end", "operation"})
    if (out->name == own) return bad("the event's name is one of the probe's own");
  if (Status status = take_number(&line, "the event's start", &out->start_ns); !status.is_ok())
    return status;
  if (Status status = take_number(&line, "the event's end", &out->end_ns); !status.is_ok())
    return status;
  if (out->end_ns < out->start_ns) return bad("the event ends before it starts");
  out->detail = line.empty() ? line : line.substr(1);
  return check_past(out->end_ns, arrival_ns);
}

Status parse_process(std::string_view line, MarkKind kind, Mark* out) {
  int64_t pid = 0;
  if (Status status = take_number(&line, "the process's number", &pid); !status.is_ok())
    return status;
  if (pid < 2 || pid > std::numeric_limits<pid_t>::max() || !take_word(&line).empty())
    return bad("one process's number is expected");
  out->kind = kind;
  out->pid = static_cast<pid_t>(pid);
  return Status::ok();
}

}  // namespace

Status parse_mark(std::string_view line, int64_t arrival_board_ns, Mark* out) {
  const std::string_view word = take_word(&line);
  if (word == "phase") return parse_phase(line, arrival_board_ns, out);
  if (word == "operation") return parse_operation(line, arrival_board_ns, out);
  if (word == "event") return parse_event(line, arrival_board_ns, out);
  if (word == "watch") return parse_process(line, MarkKind::kWatch, out);
  if (word == "unwatch") return parse_process(line, MarkKind::kUnwatch, out);
  if (word == "run") return parse_process(line, MarkKind::kRun, out);
  if (word == "sync" && take_word(&line).empty()) {
    out->kind = MarkKind::kSync;
    return Status::ok();
  }
  return bad("the line begins with none of phase, operation, event, watch, unwatch, sync");
}

}  // namespace opjoule
