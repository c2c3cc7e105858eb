#include "programs/command_line.h"

#include <algorithm>
#include <string_view>

#include "board/output.h"

namespace opjoule {
namespace {

// Where the `--` of command `run` is, or the end. CLI11 would take words behind it that are in
// brackets for lists.
int own_words(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "run") return argc;
  return static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
}

}  // namespace

void prepare(CLI::App& app) {
  app.set_version_flag("--version", app.get_name() + " " OPJOULE_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
}

std::optional<int> parse_words(CLI::App& app, int argc, char** argv,
                               std::vector<std::string>* carried) {
  const int own = carried ? own_words(argc, argv) : argc;
  if (carried) carried->assign(argv + std::min(own + 1, argc), argv + argc);
  try {
    app.parse(own, argv);
    if (carried && app.got_subcommand("run") && carried->empty())
      throw CLI::RequiredError("-- and the command");
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    while (!message.empty() && (message.back() == '\n' || message.back() == '.'))
      message.pop_back();
    const std::string program = app.get_name();
    return report_failure({StatusCode::kBadInput, message + "; see " + program + " --help"},
                          program);
  }
  return std::nullopt;
}

std::string given_command(const CLI::App& app) { return app.get_subcommands().front()->get_name(); }

}  // namespace opjoule
