#include "cli/properties_check.h"

#include <algorithm>

#include "board/proc_file.h"

namespace opjoule {
namespace {

bool is_other_engines(std::string_view key, const Engine* engine) {
  return is_foreign(key) && (engine == nullptr || !key.starts_with(engine->name + "."));
}

// Checks all keys but those of databases other than `engine` (all databases' where it is null).
Status check_all(const Properties& properties, const Engine* engine) {
  std::vector<PropertyRule> rules = workload_rules();
  for (const auto& more : {inert_rules(), place_rules()})
    rules.insert(rules.end(), more.begin(), more.end());
  if (engine != nullptr)
    rules.insert(rules.end(), engine->properties.begin(), engine->properties.end());
  else
    rules.push_back({"durability", "", ""});
  Properties relevant;
  for (const auto& [key, value] : properties.all())
    if (!is_other_engines(key, engine)) relevant.set(key, value);
  return relevant.check_known(rules, translated_rules());
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

std::vector<std::string> ignored_keys(const Properties& properties, const Engine& engine,
                                      bool has_trace) {
  // A trace ends by itself; engines have one table, of a fixed name.
  const std::string_view unused = has_trace ? "operationcount" : "table";
  std::vector<std::string> keys;
  for (const auto& [key, value] : properties.all()) {
    const auto is_it = [&wanted = key](const PropertyRule& rule) { return rule.key == wanted; };
    if (key == unused || is_other_engines(key, &engine) ||
        std::ranges::any_of(place_rules(), is_it))
      keys.push_back(key);
  }
  return keys;
}

Status check_memory(const WorkloadSettings& settings) {
  constexpr uint64_t kCopies = 4;
  const uint64_t row_bytes = uint64_t{settings.field_lengths.maximum()} * settings.field_count;
  const uint64_t needed = kCopies * row_bytes * settings.threads;
  ProcFile memory("/proc/meminfo");
  const uint64_t available = number_after(memory.read(), "MemAvailable:") * 1024;
  if (available == 0 || needed <= available) return Status::ok();
  return {StatusCode::kBadInput,
          "fieldcount=" + std::to_string(settings.field_count) + " fields of up to " +
              std::to_string(settings.field_lengths.maximum()) + " bytes with " +
              std::to_string(settings.threads) + " threads need about " +
              std::to_string(needed >> 20) + " MiB, and this computer has " +
              std::to_string(available >> 20) +
              " MiB of memory left; use smaller records or fewer threads"};
}

}  // namespace opjoule
