#include "databases/shared/options.h"

namespace opjoule {

PropertyRule durability_rule() {
  return {"durability", "async",
          "async: the kernel writes back when it likes; sync: every commit is durable"};
}

Options::Options(std::string_view engine, const Properties& properties,
                 const std::vector<PropertyRule>& rules)
    : properties_(properties), rules_(rules) {
  const std::string prefix = std::string(engine) + ".";
  Properties own;
  for (const auto& [key, value] : properties.all())
    if (key.starts_with(prefix)) own.set(key, value);
  status_ = own.check_known(rules);
}

int64_t Options::integer(const std::string& key, int64_t minimum, int64_t maximum) {
  int64_t value = minimum;
  keep_first(with_default(key).integer(key, minimum, maximum, &value));
  settings_[key] = std::to_string(value);
  return value;
}

bool Options::boolean(const std::string& key) {
  bool value = false;
  keep_first(with_default(key).boolean(key, &value));
  settings_[key] = value ? "true" : "false";
  return value;
}

std::string Options::choice(const std::string& key, const std::vector<std::string>& allowed) {
  std::string value = allowed.front();
  keep_first(with_default(key).choice(key, allowed, &value));
  settings_[key] = value;
  return value;
}

bool Options::sync() { return choice("durability", {"async", "sync"}) == "sync"; }

void Options::keep_first(Status status) {
  if (status_.is_ok()) status_ = std::move(status);
}

Properties Options::with_default(const std::string& key) const {
  Properties one;
  for (const PropertyRule& rule : rules_)
    if (rule.key == key) one.set(key, properties_.text(key, rule.default_value));
  return one;
}

}  // namespace opjoule
