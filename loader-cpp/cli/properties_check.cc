#include "cli/properties_check.h"

#include "workload/settings.h"

namespace opjoule {
namespace {

// Checks all keys but those of engines other than `engine` (all engines' where it is null).
Status check_all(const Properties& properties, const Engine* engine) {
  const auto is_other_engines = [engine](std::string_view key) {
    for (const Engine& other : engines())
      if (&other != engine && key.starts_with(other.name + ".")) return true;
    return false;
  };
  std::vector<PropertyRule> rules = workload_rules();
  rules.insert(rules.end(), inert_rules().begin(), inert_rules().end());
  if (engine != nullptr)
    rules.insert(rules.end(), engine->properties.begin(), engine->properties.end());
  else
    rules.push_back({"durability", "", ""});
  Properties relevant;
  for (const auto& [key, value] : properties.all())
    if (!is_other_engines(key)) relevant.set(key, value);
  return relevant.check_known(rules);
}

}  // namespace

Status gather_properties(const CommandOptions& options, Properties* out) {
  for (const std::string& file : options.workload_files)
    if (Status status = out->load_file(file); !status.is_ok()) return status;
  for (const std::string& assignment : options.assignments)
    if (Status status = out->set(assignment); !status.is_ok()) return status;
  if (options.seed.has_value()) out->set("seed", std::to_string(*options.seed));
  return Status::ok();
}

Status require_engine(const std::string& name, const Engine** out) {
  *out = find_engine(name);
  if (*out != nullptr) return Status::ok();
  std::string known;
  for (const Engine& engine : engines()) known += (known.empty() ? "" : ", ") + engine.name;
  return {StatusCode::kBadInput, "--db " + name + ": not built in; there are " + known};
}

Status check_properties(const Properties& properties, const Engine& engine) {
  return check_all(properties, &engine);
}

Status check_workload_properties(const Properties& properties) {
  return check_all(properties, nullptr);
}

}  // namespace opjoule
