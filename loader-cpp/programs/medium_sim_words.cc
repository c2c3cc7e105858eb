#include "programs/medium_sim_words.h"

#include <algorithm>

#include "programs/command_line.h"

namespace opjoule {
namespace {

constexpr const char* kAboutMediumSim =
    "Simulates the storage medium of a board: programs run as slowly as it would let them.\n"
    "Exit codes: 0 served; 2 bad input; 3 a file or socket failed; of run: that of the command, "
    "126 or 127 where it cannot be started. docs/reference/medium-sim.md has the files and lines.";

void add_medium_serve(CLI::App& app, MediumServeOptions& options, double* flush_s, double* expire_s,
                      double* wakeup_s) {
  CLI::App* serve = app.add_subcommand(
      "serve",
      "Simulate the medium until stdin ends or SIGTERM comes; says what it does on stdout");
  MediumSettings& medium = options.medium;
  const auto positive = CLI::Range(1e-9, 1e15);
  serve->add_option("--socket", options.socket, "socket for `medium-sim run`")->required();
  serve->add_option("--state", options.state, "folder for the files stat and meminfo")->required();
  serve->add_option("--live", options.live, "FIFO that gets the busy stretches");
  CLI::Option* files = serve->add_option(
      "--files", options.files, "folder of the medium's files; a line `drop` on stdin drops them");
  serve->add_option("--cache-bytes", options.cache_bytes, "most bytes of these files in memory")
      ->needs(files);
  serve->add_option("--write-bytes-per-s", medium.write_bytes_per_s, "sequential write rate")
      ->required()
      ->check(CLI::Range(1.0, 1e15));
  serve->add_option("--read-bytes-per-s", medium.read_bytes_per_s, "sequential read rate")
      ->required()
      ->check(CLI::Range(1.0, 1e15));
  serve->add_option("--flush-s", *flush_s, "duration of a cache flush")
      ->required()
      ->check(CLI::Range(0.0, 3600.0));
  serve
      ->add_option("--dirty-limit-bytes", medium.dirty_limit_bytes,
                   "writers wait while more is dirty or in flight")
      ->required();
  serve
      ->add_option("--dirty-background-bytes", medium.dirty_background_bytes,
                   "write-back begins when more is dirty")
      ->required();
  serve->add_option("--expire-s", *expire_s, "age at which dirty pages are written back")
      ->check(positive)
      ->capture_default_str();
  serve->add_option("--wakeup-s", *wakeup_s, "time between two looks for such pages")
      ->check(positive)
      ->capture_default_str();
}

}  // namespace

std::optional<int> parse(int argc, char** argv, MediumSimWords* out) {
  CLI::App app(kAboutMediumSim, kMediumSim);
  prepare(app);
  double flush_s = 0;
  double expire_s = 30;
  double wakeup_s = 5;
  add_medium_serve(app, out->serve, &flush_s, &expire_s, &wakeup_s);
  CLI::App* run_app = app.add_subcommand(
      "run", "Become a command whose writes and syncs, with those of its descendants, are slowed");
  run_app->add_option("--socket", out->run.socket, "socket of `medium-sim serve`")->required();
  run_app->footer("After --: the command and its arguments.");
  if (auto ended = parse_words(app, argc, argv, &out->run.command)) return ended;
  out->command = given_command(app);
  MediumSettings& medium = out->serve.medium;
  medium.flush_ns = static_cast<int64_t>(flush_s * 1e9);
  medium.expire_ns = static_cast<int64_t>(expire_s * 1e9);
  medium.wakeup_ns = std::max<int64_t>(static_cast<int64_t>(wakeup_s * 1e9), 1'000'000);
  return std::nullopt;
}

}  // namespace opjoule
