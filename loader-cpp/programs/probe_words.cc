#include "programs/probe_words.h"

#include "programs/command_line.h"

namespace opjoule {
namespace {

constexpr const char* kAboutProbe =
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

void add_probe_serve(CLI::App& app, ServeOptions& options) {
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

}  // namespace

std::optional<int> parse(int argc, char** argv, ProbeWords* out) {
  CLI::App app(kAboutProbe, kProbe);
  prepare(app);
  add_probe_serve(app, out->serve);
  add_run(app, out->run);
  add_mark(app, out->mark);
  CLI::App* gpio = app.add_subcommand(
      "gpio", "List the board's GPIO lines, or request the one of --sync and show it");
  gpio->add_option("--sync", out->gpio_sync, "gpio:NAME, gpio:CHIP:LINE or gpio:sysfs:NUMBER");
  gpio->add_option("--pulses", out->gpio_pulses,
                   "drive it: so many pulses of half a second; without, its level stays as it is")
      ->check(CLI::Range(0, 3600));
  if (auto ended = parse_words(app, argc, argv, &out->run.command)) return ended;
  out->command = given_command(app);
  return std::nullopt;
}

}  // namespace opjoule
