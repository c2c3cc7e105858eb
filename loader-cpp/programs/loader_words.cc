#include "programs/loader_words.h"

#include "board/output.h"
#include "programs/command_line.h"

namespace opjoule {
namespace {

void add_workload_options(CLI::App* command, CommandOptions& options) {
  command->add_option("-P,--workload", options.workload_files,
                      "YCSB property file; several are read in order, later ones win");
  command
      ->add_option("-p", options.assignments,
                   "key=value, wins over files; `loader properties` lists the keys")
      ->allow_extra_args(false);
}

void add_phase_options(CLI::App* command, CommandOptions& options) {
  command->add_option("--db", options.database, "engine; `loader databases` lists them")
      ->required();
  command->add_option("--path", options.path, "folder of the database");
  add_workload_options(command, options);
  command->add_option("--threads", options.threads, "threads (property threadcount)")
      ->check(CLI::Range(1, 1024));
  command->add_option(
      "--trace", options.trace,
      "take the operations from this file in the text form of YCSB's basic binding; - is stdin");
  command
      ->add_option("--then", options.then,
                   "a run that follows in this process, on the open database, with these further "
                   "properties (\"key=value key=value\"); several follow in order")
      ->allow_extra_args(false);
  command->add_option("--op-log", options.operation_log, "file for the log of every operation");
  command->add_option("--events", options.events, "file for background activity, JSON lines");
  command->add_option("--seed", options.seed, "of every random draw (property seed)");
  command->add_flag("--progress", options.progress, "a JSON line on stderr twice a second");
  command->add_flag("--check", options.check,
                    "check workload, properties and engine settings, and stop there");
}

constexpr const char* kAboutLoader =
    "Runs a YCSB workload on a database in this process and logs every operation on the board "
    "clock.\n"
    "\n"
    "  loader load --db leveldb --path /data/db --workload workloada -p recordcount=1000000\n"
    "  loader run  --db leveldb --path /data/db --workload workloada -p recordcount=1000000 -p "
    "operationcount=500000\n"
    "\n"
    "stdout has JSON lines: one for each phase boundary, then the summary. Exit codes: 0 every "
    "operation ended as\n"
    "the workload expects, 1 some did not, 2 bad input, 3 the database failed, 4 corrupt or "
    "written with other\n"
    "settings, 5 no space, 6 not supported by the engine, 7 a load cut short by maxexecutiontime, "
    "130 interrupted.";

// The first argument is a command, or an option such as --help.
Status check_command(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (first.starts_with("-")) return Status::ok();
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == first) return Status::ok();
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return {StatusCode::kBadInput, (first.empty() ? "no command" : first + ": no such command") +
                                     "; there are " + known + "; see loader --help"};
}

}  // namespace

std::optional<int> parse(int argc, char** argv, LoaderWords* out) {
  CLI::App app(kAboutLoader, "loader");
  prepare(app);
  CommandOptions& options = out->options;
  CLI::App* load = app.add_subcommand("load", "Fill a new database with the workload's records");
  add_phase_options(load, options);
  load->add_flag("--resume", options.resume, "go on where an interrupted load stopped");
  CLI::App* run = app.add_subcommand("run", "Do the workload's operations on a loaded database");
  add_phase_options(run, options);
  CLI::App* trace = app.add_subcommand(
      "trace", "Write the workload's operations as text, in the form of YCSB's basic binding");
  add_workload_options(trace, options);
  trace->add_option("--phase", options.phase, "load or run")
      ->check(CLI::IsMember({"load", "run"}))
      ->capture_default_str();
  trace->add_option("--out", options.out, "file; stdout if not given");
  trace->add_option("--seed", options.seed, "of every random draw (property seed)");
  app.add_subcommand("databases", "List the engines built in, with their versions");
  CLI::App* properties =
      app.add_subcommand("properties", "List every property, its default and meaning");
  properties->add_option("--db", options.database, "of one engine");
  if (Status status = check_command(app, argc, argv); !status.is_ok())
    return report_failure(status);
  if (auto ended = parse_words(app, argc, argv)) return ended;
  out->command = given_command(app);
  return std::nullopt;
}

}  // namespace opjoule
