// An engine's options, read from the properties: defaults come from the engine's rules, values are
// checked, and those in effect are collected for the summary.
//
// After the first error every read returns the default; status() is to be asked once, at the end.
// Thread safety: none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "loader/database.h"

namespace opjoule {

// `durability`, which every engine takes: async leaves writing back to the kernel, sync makes each
// commit durable.
PropertyRule durability_rule();

class Options {
 public:
  // An unknown key with the engine's prefix is already an error (kBadInput, with the key that it
  // misspells). `engine` is the prefix without its dot.
  Options(std::string_view engine, const Properties& properties,
          const std::vector<PropertyRule>& rules);

  int64_t integer(const std::string& key, int64_t minimum, int64_t maximum);
  bool boolean(const std::string& key);
  std::string choice(const std::string& key, const std::vector<std::string>& allowed);
  // durability=sync.
  bool sync();

  [[nodiscard]] const Status& status() const { return status_; }
  // The values read so far, by property name; the engine adds what it reads back.
  std::map<std::string, std::string>& settings() { return settings_; }

 private:
  void keep_first(Status status);
  Properties with_default(const std::string& key) const;

  const Properties& properties_;
  const std::vector<PropertyRule>& rules_;
  Status status_;
  std::map<std::string, std::string> settings_;
};

}  // namespace opjoule
