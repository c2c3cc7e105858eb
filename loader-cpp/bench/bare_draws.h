// The keys and values of a bare loop, drawn one at a time as the loop goes, by the loader's own
// code.
#pragma once

#include <string>
#include <string_view>

#include "workload/generator.h"

namespace opjoule {

class BareDraws {
 public:
  BareDraws(uint64_t rows, uint64_t operations, bool load, uint32_t value_bytes)
      : settings_(settings_of(rows, operations)), load_(load), value_(value_bytes, '\0') {}

  // The key the loader asks for with seed 1, one thread and YCSB's Zipfian, or loads.
  const std::string& key(uint64_t i) {
    format_key(load_ ? i : chooser_.draw(settings_.row_count - 1), {}, key_);
    return key_;
  }
  std::string_view value() {
    bytes_.fill_random(value_);
    return value_;
  }

 private:
  static WorkloadSettings settings_of(uint64_t rows, uint64_t operations) {
    WorkloadSettings settings;
    settings.row_count = settings.insert_count = rows;
    settings.operation_count = operations;
    settings.distribution = RequestDistribution::kZipfian;
    return settings;
  }

  WorkloadSettings settings_;
  KeySpace state_{settings_};
  Random random_{1, 0};
  KeyChooser chooser_{state_, random_};
  ValueBytes bytes_{1, 0, ValueCharacters::kPrintable, 1};
  bool load_;
  std::string key_;
  std::string value_;
};

}  // namespace opjoule
