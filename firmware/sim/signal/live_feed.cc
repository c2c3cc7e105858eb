#include "signal/live_feed.h"

#include <algorithm>
#include <vector>

#include "errors.h"
#include "signal/csv.h"

namespace opjoule::rig {
namespace {

[[noreturn]] void malformed(std::string_view line) {
  throw RigError("live input line '" + std::string(line) +
                 "' is none of: p BOARD_NS CURRENT_A VOLTAGE_V, e BOARD_NS LEVEL, w BOARD_NS, q");
}

std::vector<std::string_view> words(std::string_view line) {
  auto fields = split(line, ' ');
  std::erase_if(fields, [](std::string_view field) { return field.empty(); });
  return fields;
}

std::int64_t board_ns_of(std::string_view word, std::string_view line) {
  long long board_ns = 0;
  if (!parse_integer(word, board_ns) || board_ns <= 0) malformed(line);
  return board_ns;
}

}  // namespace

void LiveFeed::take(std::string_view text) {
  partial_ += text;
  std::size_t start = 0;
  for (std::size_t end; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1)
    take_line(std::string_view(partial_).substr(start, end - start));
  partial_.erase(0, start);
}

void LiveFeed::take_line(std::string_view line) {
  const auto fields = words(line);
  if (fields.empty()) return;
  if (fields[0] == "q" && fields.size() == 1) {
    ended_ = true;
    return;
  }
  if (fields.size() < 2) malformed(line);
  const std::int64_t board_ns = board_ns_of(fields[1], line);
  if (!started()) epoch_ns_ = board_ns;
  double first = 0, second = 0;
  if (fields[0] == "p" && fields.size() == 4 && parse_number(fields[2], first) &&
      parse_number(fields[3], second)) {
    if (!too_late(board_ns)) profile_.add(profile_s(board_ns), first, second);
  } else if (fields[0] == "e" && fields.size() == 3 && (fields[2] == "0" || fields[2] == "1")) {
    if (!too_late(board_ns)) add_edge(board_ns, fields[2] == "1");
  } else if (fields[0] == "w" && fields.size() == 2) {
    watermark_ns_ = std::max(watermark_ns_, board_ns);
  } else {
    malformed(line);
  }
}

bool LiveFeed::too_late(std::int64_t board_ns) {
  if (board_ns >= simulated_ns_) return false;
  ++late_rows_;
  return true;
}

void LiveFeed::add_edge(std::int64_t board_ns, bool level) {
  auto at = edges_.end();
  while (at != edges_.begin() && std::prev(at)->board_ns > board_ns) --at;
  edges_.insert(at, {board_ns, level});
}

}  // namespace opjoule::rig
