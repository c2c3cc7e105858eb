#include "board/crash_line.h"
#include "board/stop_signal.h"
#include "cli/commands.h"
#include "programs/loader_words.h"

int main(int argc, char** argv) {
  using namespace opjoule;
  LoaderWords words;
  if (const auto ended = parse(argc, argv, &words)) return *ended;
  catch_stop_signals();
  report_crashes();
  const auto& [command, options] = words;
  if (command == "load") return run_phase_command(options, Phase::kLoad);
  if (command == "run") return run_phase_command(options, Phase::kRun);
  if (command == "trace") return trace_command(options);
  if (command == "databases") return databases_command();
  return properties_command(options);
}
