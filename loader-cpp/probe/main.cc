// The command line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "board/exit_code.h"
#include "board/output.h"
#include "board/stop_signal.h"
#include "probe/board_commands.h"
#include "probe/commands.h"

namespace opjoule {
namespace {

constexpr const char* kAbout =
    "Watches a board during a measurement: its clock, sync line, counters, and the marks that\n"
    "workloads set. It knows nothing of what they do.\n"
    "\n"
    "  probe serve --dir /run/opjoule --path /mnt/ssd     requests on stdin, JSON lines on stdout\n"
    "  probe run --dir /run/opjoule --tag job -- make -j4  a command whose use is counted\n"
    "  probe mark phase begin load                        from within that command\n"
    "\n"
    "Exit codes: 0, 2 bad input, 3 a device or connection failed, 5 no space, 130 interrupted; "
    "of run:\n"
    "that of the command. docs/reference/probe.md has the protocol.";

struct Options {
  ServeOptions serve;
  RunOptions run;
  MarkOptions mark;
  std::string gpio_sync;
  uint32_t gpio_pulses = 0;
};

void add_serve(CLI::App& app, ServeOptions& options) {
  CLI::App* serve = app.add_subcommand(
      "serve", "Answer requests, record samples, edges and marks, until stdin ends or is silent");
  serve->add_option("--dir", options.folder, "folder for the files and the socket of the marks")
      ->required();
  serve->add_option("--sync", options.sync,
                    "sync line: gpio:NAME, gpio:CHIP:LINE, gpio:sysfs:NUMBER or virtual:PATH; "
                    "toggles every 0.5 to 1.5 s");
  serve->add_option("--seed", options.seed, "of the pauses of the sync line")
      ->capture_default_str();
  serve->add_option("--path", options.storage,
                    "folder on the medium whose bytes are counted and that drain writes back");
  serve->add_option("--period-ms", options.period_ms, "time between two samples")
      ->check(CLI::Range(1, 3'600'000))
      ->capture_default_str();
  serve
      ->add_option("--scope", options.scope,
                   "what the board is: all of this computer, or (a simulated board) the watched "
                   "processes alone")
      ->check(CLI::IsMember({kBoardScope, kProcessesScope}))
      ->capture_default_str();
  serve->add_option("--kernel-files", options.kernel_files,
                    "folder whose stat and meminfo stand for those of the kernel: of a simulated "
                    "medium");
  serve->add_option("--live", options.live, "FIFO that gets samples and edges, too");
  serve
      ->add_option("--live-period-ms", options.live_period_ms,
                   "time between two samples there (default: as --period-ms)")
      ->check(CLI::Range(1, 3'600'000));
  serve->add_option("--silence-s", options.silence_s, "end when stdin says nothing for so long")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
}

void add_run(CLI::App& app, RunOptions& options) {
  CLI::App* run = app.add_subcommand(
      "run", "Run a command that is counted, and stopped when stdin ends or is silent");
  run->add_option("--dir", options.folder, "folder that `probe serve` has")->required();
  run->add_option("--tag", options.tag, "folder there for the command's pid and status")
      ->required();
  run->add_option("--serve", options.marks, "socket of the marks (default: DIR/marks if there)");
  run->add_option("--phase", options.phase,
                  "mark a phase of this name from the command's start to its end");
  run->add_option("--pin", options.pin, "processors that it may use, as in 0,2-3");
  run->add_option("--silence-s", options.silence_s,
                  "stop it when stdin says nothing for so long; 0: stdin is not read")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  run->add_option("--kill-after-s", options.kill_after_s,
                  "kill it with its group when it does not stop within so long")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  run->footer("After --: the command and its arguments.");
}

void add_mark(CLI::App& app, MarkOptions& options) {
  CLI::App* mark = app.add_subcommand(
      "mark",
      "Tell the probe one mark, as in `probe mark phase begin load`; nothing is done where "
      "OPJOULE_MARKS is not set");
  mark->add_option("--marks", options.socket, "socket (default: $OPJOULE_MARKS)");
  mark->add_option("--file", options.file, "marks of a file, a line each; - is stdin");
  mark->add_option("words", options.words, "the mark");
}

// Where the `--` of `probe run` is, or the end. What follows is a command's own: CLI11 would take
// its words that are in brackets for lists.
int own_arguments(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  return static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
}

// A command-line mistake in one line, as every other failure.
int usage_failure(const CLI::ParseError& error) {
  std::string message = error.what();
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
  return report_failure({StatusCode::kBadInput, message + "; see probe --help"}, kProbe);
}

int execute(int argc, char** argv) {
  CLI::App app(kAbout, kProbe);
  app.set_version_flag("--version", "probe " OPJOULE_PROBE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Options options;
  add_serve(app, options.serve);
  add_run(app, options.run);
  add_mark(app, options.mark);
  CLI::App* gpio = app.add_subcommand(
      "gpio", "List the board's GPIO lines, or request the one of --sync and show it");
  gpio->add_option("--sync", options.gpio_sync, "gpio:NAME, gpio:CHIP:LINE or gpio:sysfs:NUMBER");
  gpio->add_option("--pulses", options.gpio_pulses,
                   "drive it: so many pulses of half a second; without, its level stays as it is")
      ->check(CLI::Range(0, 3600));
  const int own = own_arguments(argc, argv);
  options.run.command.assign(argv + std::min(own + 1, argc), argv + argc);
  try {
    app.parse(own, argv);
    if (app.got_subcommand("run") && options.run.command.empty())
      throw CLI::RequiredError("-- and the command");
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return usage_failure(error);
  }
  const std::string command = app.get_subcommands().front()->get_name();
  if (command == "run") return run_command(options.run);  // handles signals itself
  catch_stop_signals();
  if (command == "serve") return serve_command(options.serve);
  if (command == "mark") return mark_command(options.mark);
  return gpio_command(options.gpio_sync, options.gpio_pulses, kProbe);
}

}  // namespace
}  // namespace opjoule

int main(int argc, char** argv) { return opjoule::execute(argc, argv); }
