// The commands that need no database: idle, clock, databases, properties.
#include "probe/board_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/output.h"
#include "board/stop_signal.h"
#include "cli/commands.h"
#include "cli/instruments.h"
#include "cli/progress.h"
#include "cli/properties_check.h"

namespace opjoule {

constexpr int64_t kIdleSliceNs = kNsPerSecond;

int idle_command(const CommandOptions& options) {
  Instruments instruments;
  const Status status = instruments.start(options, static_cast<uint64_t>(options.seed.value_or(1)),
                                          [] { return uint64_t{0}; });
  if (!status.is_ok()) return report_failure(status);
  std::optional<ProgressLines> progress;
  if (options.progress) progress.emplace([] { return uint64_t{0}; }, 0);
  instruments.phase("idle-start");
  const int64_t start_ns = board_ns();
  const int64_t end_ns = start_ns + static_cast<int64_t>(options.seconds * 1e9);
  // In slices, so that a full disk under the system samples ends it.
  while (board_ns() < end_ns && !stop_flag().load())
    sleep_until(std::min(end_ns, board_ns() + kIdleSliceNs));
  instruments.phase("idle-end");
  progress.reset();
  const double duration_s = static_cast<double>(board_ns() - start_ns) * 1e-9;
  const Status stopped = instruments.stop();
  print_line("{\"summary\":{\"command\":\"idle\",\"operations\":0,\"duration_s\":" +
             std::to_string(duration_s) +
             ",\"interrupted\":" + (stop_requested() ? "true" : "false") +
             ",\"sync_edges\":" + std::to_string(instruments.sync_edges()) + "}}");
  if (!stopped.is_ok()) return report_failure(stopped);
  return stop_requested() ? kExitInterrupted : kExitOk;
}

int clock_command() {
  // Answers each line as soon as its end has come, whatever it says.
  char received[256];
  while (!stop_requested()) {
    const ssize_t count = ::read(STDIN_FILENO, received, sizeof received);
    const std::string now = std::to_string(board_ns());
    if (count <= 0) break;
    for (auto line = std::count(received, received + count, '\n'); line > 0; --line)
      print_line(now);
  }
  return stop_requested() ? kExitInterrupted : kExitOk;
}

int steering_command() {
  std::string json;
  if (Status status = clock_steering(&json); !status.is_ok()) return report_failure(status);
  print_line("{\"adjtimex\":" + json + "}");
  return kExitOk;
}

int databases_command() {
  for (const Engine& engine : engines()) print_line(engine.name + " " + engine.version);
  return kExitOk;
}

namespace {

void print_rules(const std::string& title, const std::vector<PropertyRule>& rules) {
  std::printf("%s\n", title.c_str());
  for (const PropertyRule& rule : rules)
    std::printf("  %-44s %-14s %s\n", rule.key.c_str(), rule.default_value.c_str(),
                rule.help.c_str());
}

}  // namespace

int properties_command(const CommandOptions& options) {
  const Engine* only = nullptr;
  if (!options.database.empty())
    if (Status status = require_engine(options.database, &only); !status.is_ok())
      return report_failure(status);
  print_rules("workload", workload_rules());
  for (const Engine& engine : engines())
    if ((only == nullptr || only == &engine) && !engine.properties.empty())
      print_rules("\n" + engine.name + " " + engine.version, engine.properties);
  print_rules("\naccepted from YCSB's files, without effect", inert_rules());
  return kExitOk;
}

}  // namespace opjoule
