// How long a field's value is: YCSB's fieldlengthdistribution.
//
// Thread safety: const draws from any thread, each with its own Random.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loader/properties.h"
#include "loader/random.h"
#include "loader/status.h"
#include "workload/zipfian.h"

namespace opjoule {

class FieldLengths {
 public:
  // fieldlength bytes, always.
  static FieldLengths constant(uint32_t bytes);
  // From fieldlengthdistribution, fieldlength, minfieldlength and fieldlengthhistogram. kBadInput
  // names the property, or the histogram file's line.
  static Status from(const Properties& properties, FieldLengths* out);

  uint32_t draw(Random& random) const;
  [[nodiscard]] bool is_constant() const { return kind_ == Kind::kConstant; }
  // The longest value that can be drawn [bytes].
  [[nodiscard]] uint32_t maximum() const { return maximum_; }

 private:
  enum class Kind { kConstant, kUniform, kZipfian, kHistogram };

  // YCSB's HistogramGenerator file: "BlockSize<TAB>bytes", then "bucket<TAB>count" with buckets
  // from 0 up.
  Status load_histogram(const std::string& path);
  [[nodiscard]] uint32_t draw_histogram(Random& random) const;

  Kind kind_ = Kind::kConstant;
  uint32_t minimum_ = 1;
  uint32_t maximum_ = 100;
  std::optional<YcsbZipfian> zipfian_;
  uint32_t block_bytes_ = 0;
  std::vector<int64_t> counts_;
  int64_t total_count_ = 0;
};

}  // namespace opjoule
