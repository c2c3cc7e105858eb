// What the command lines of the programs have in common. Only the sources of this folder include
// it: the library's header takes the compiler longest of all, so they are compiled as one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace opjoule {

// --version, and one command.
void prepare(CLI::App& app);
// The exit code where the program ends at once: after --help, or a mistake, which is told in one
// line on stderr. Without `carried`, every word is the program's own; with it, what follows `--`
// of command `run` is the command that it starts.
std::optional<int> parse_words(CLI::App& app, int argc, char** argv,
                               std::vector<std::string>* carried = nullptr);
// The command that was given.
std::string given_command(const CLI::App& app);

}  // namespace opjoule
