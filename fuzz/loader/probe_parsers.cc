// What the probe reads: lines of workloads (marks) and of the host (requests).
#include <cmath>
#include <string_view>

#include "fuzz/loader/loader_parsers.h"
#include "fuzz/parsers.h"
#include "probe/mark.h"
#include "probe/request.h"

namespace opjoule::fuzz {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;

template <typename Take>
void each_line(const uint8_t* data, size_t size, Take take) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    take(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace

void take_marks(const uint8_t* data, size_t size) {
  each_line(data, size, [](std::string_view line) {
    Mark mark;
    if (!parse_mark(line, kNow, &mark).is_ok()) return;
    expect(mark.start_ns >= 0 && mark.end_ns >= mark.start_ns, "a mark ends after it starts");
    expect(mark.end_ns <= kNow, "a mark lies in the past");
    expect(mark.name.size() <= kMarkNameMax, "a name has at most 63 letters");
    const bool of_process = mark.kind == MarkKind::kWatch || mark.kind == MarkKind::kUnwatch ||
                            mark.kind == MarkKind::kRun;
    expect(!of_process || mark.pid >= 2, "a process is neither the kernel nor init");
  });
}

void take_requests(const uint8_t* data, size_t size) {
  each_line(data, size, [](std::string_view line) {
    Request request;
    if (!parse_request(std::string(line), &request).is_ok()) return;
    expect(request.name.find('/') == std::string::npos, "a name names no other folder");
    expect(request.name.empty() || request.name.front() != '.', "a name is no hidden file");
    expect(std::isfinite(request.limit_s) && request.limit_s >= 0, "a limit is a time");
    expect(request.bit_ms <= 10000, "a bit lasts at most 10 s");
  });
}

}  // namespace opjoule::fuzz
