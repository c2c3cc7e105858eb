#include "probe/mark.h"

#include <doctest/doctest.h>

namespace opjoule {
namespace {

constexpr int64_t kNow = 1000;

Mark parsed(const std::string& line) {
  Mark mark;
  const Status status = parse_mark(line, kNow, &mark);
  REQUIRE_MESSAGE(status.is_ok(), (line + ": " + status.message()));
  return mark;
}

TEST_CASE("a phase has the time of its arrival, or the one that it brings") {
  CHECK(parsed("phase begin load").kind == MarkKind::kPhaseBegin);
  CHECK(parsed("phase begin load").name == "load");
  CHECK(parsed("phase begin load").start_ns == kNow);
  CHECK(parsed("phase end load 7").kind == MarkKind::kPhaseEnd);
  CHECK(parsed("phase end load 7").start_ns == 7);
}

TEST_CASE("an operation has kind, start, duration, and perhaps bytes and an outcome") {
  const Mark whole = parsed("operation read 100 20 4096 failed");
  CHECK(whole.start_ns == 100);
  CHECK(whole.end_ns == 120);
  CHECK(whole.detail == "read 4096 failed");
  CHECK(parsed("operation read 100 20").detail == "read 0 ok");
  CHECK(parsed("operation read 100 20 5").detail == "read 5 ok");
}

TEST_CASE("an event has a name, start, end and any detail") {
  const Mark event = parsed("event garbage-collection 5 9 old generation, 3 MB");
  CHECK(event.name == "garbage-collection");
  CHECK(event.start_ns == 5);
  CHECK(event.end_ns == 9);
  CHECK(event.detail == "old generation, 3 MB");
  CHECK(parsed("event gc 5 9").detail.empty());
}

TEST_CASE("processes and sync") {
  CHECK(parsed("watch 1234").pid == 1234);
  CHECK(parsed("unwatch 1234").kind == MarkKind::kUnwatch);
  CHECK(parsed("run 1234").kind == MarkKind::kRun);
  CHECK(parsed("sync").kind == MarkKind::kSync);
}

TEST_CASE("whatever else a line says is refused in words") {
  const std::pair<std::string, const char*> lines[] = {
      {"", "begins with none of"},
      {"phases begin load", "begins with none of"},
      {"phase load", "begin or end"},
      {"phase begin", "the phase's name"},
      {"phase begin a/b", "the phase's name"},
      {"phase begin " + std::string(64, 'a'), "the phase's name"},
      {"phase begin load soon", "the phase's time"},
      {"phase begin load -5", "the phase's time"},
      {"phase begin load 5 6", "more than a name and a time"},
      {"phase begin load 1700000000000000000", "CLOCK_MONOTONIC"},
      {"operation", "the operation's kind"},
      {"operation read 5", "the operation's duration"},
      {"operation read 5 6 x", "the operation's bytes"},
      {"operation read 5 6 7 good", "neither ok nor failed"},
      {"operation read 5 6 7 ok more", "more than five"},
      {"operation read 990 20", "CLOCK_MONOTONIC"},
      {"operation read 5 9223372036854775807", "too long"},
      {"event sync-edge 5 6", "one of the probe's own"},
      {"event gc 6 5", "ends before"},
      {"event gc 5", "the event's end"},
      {"watch", "the process's number"},
      {"watch 1", "one process"},
      {"watch 7 8", "one process"},
      {"watch 99999999999", "one process"},
      {"sync now", "begins with none of"},
  };
  for (const auto& [line, why] : lines) {
    Mark mark;
    const Status status = parse_mark(line, kNow, &mark);
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK_MESSAGE(status.message().find(why) != std::string::npos,
                  (line + ": " + status.message()));
  }
}

}  // namespace
}  // namespace opjoule
