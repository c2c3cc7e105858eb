#include "cli/following_runs.h"

#include <sstream>
#include <string>

#include "cli/properties_check.h"

namespace opjoule {
namespace {

Status set_all(const std::string& assignments, Properties* out) {
  std::istringstream words(assignments);
  for (std::string word; words >> word;)
    if (Status status = out->set(word); !status.is_ok()) return status;
  return Status::ok();
}

// Of the first property that all phases share.
Status check_unshared(const Properties& further, const Engine& engine) {
  for (const auto& [key, value] : further.all())
    if (key == "durability" || key == "threadcount" || key.starts_with("settle") ||
        key.starts_with(engine.name + "."))
      return {StatusCode::kBadInput,
              "--then " + key + ": the same for all phases; give it with -p"};
  return Status::ok();
}

}  // namespace

Status prepare_following(const CommandOptions& options, const Properties& properties,
                         const Engine& engine, std::deque<FollowingRun>* out) {
  if (!options.then.empty() && !options.trace.empty())
    return {StatusCode::kBadInput,
            "--then with --trace: a trace has all operations; leave one out"};
  for (const std::string& words : options.then) {
    Properties further;
    FollowingRun next{properties, {}};
    Status status = set_all(words, &further);
    if (status.is_ok()) status = check_unshared(further, engine);
    if (status.is_ok()) status = set_all(words, &next.properties);
    if (status.is_ok()) status = check_properties(next.properties, engine);
    if (status.is_ok())
      status =
          WorkloadSettings::from(next.properties, Phase::kRun, options.threads, &next.settings);
    if (status.is_ok()) status = check_memory(next.settings);
    if (!status.is_ok()) return status;
    out->push_back(std::move(next));
  }
  return Status::ok();
}

}  // namespace opjoule
