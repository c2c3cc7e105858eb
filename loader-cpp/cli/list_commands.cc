// The commands that list what is built in: databases, properties.
#include <cstdio>

#include "board/exit_code.h"
#include "board/output.h"
#include "cli/commands.h"
#include "cli/properties_check.h"

namespace opjoule {

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
