// YCSB property files and -p settings: parsing, typed access, and the rules that find wrong keys
// and values.
//
// Thread safety: const access from any thread once loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "loader/status.h"

namespace opjoule {

// One known key: its default (text, as YCSB prints it) and one line of help.
struct PropertyRule {
  std::string key;
  std::string default_value;
  std::string help;
};

class Properties {
 public:
  // java.util.Properties' syntax as YCSB's files use it: '#' and '!' comments, key=value, key:
  // value or key value, a '\' at the end continues the line, \t, \n, \r, \f and \uXXXX (given in
  // UTF-8). A byte order mark is skipped; what is no UTF-8 is read as ISO 8859-1. kBadInput with
  // file and line for anything else, and for a file of more than 1 MiB.
  Status load_file(const std::string& path);
  // "key=value" as given by -p; later settings win. A few other names that ports of YCSB have for a
  // property are taken for it.
  Status set(std::string_view assignment);
  void set(std::string_view key, std::string_view value);

  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key, std::string_view fallback) const;
  // Typed reads leave *out at its value when the key is absent; kBadInput names key, value and what
  // was expected.
  Status integer(std::string_view key, int64_t minimum, int64_t maximum, int64_t* out) const;
  Status real(std::string_view key, double minimum, double maximum, double* out) const;
  Status boolean(std::string_view key, bool* out) const;
  Status choice(std::string_view key, const std::vector<std::string>& allowed,
                std::string* out) const;

  // kBadInput for the first key that no rule names, with what `translations` say of it, or else the
  // key of which it is a misspelling.
  Status check_known(const std::vector<PropertyRule>& rules,
                     const std::vector<PropertyRule>& translations = {}) const;
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& all() const {
    return values_;
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace opjoule
