#include "workload/field_lengths.h"

#include <charconv>
#include <limits>
#include <sstream>

#include "board/input_file.h"

namespace opjoule {
namespace {

constexpr int64_t kLongestField = 1 << 30;
constexpr size_t kLongestHistogram = size_t{16} << 20;

// "name<TAB>number"; false where the line is anything else.
bool split_line(const std::string& line, std::string* name, int64_t* number) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) return false;
  *name = line.substr(0, tab);
  size_t end = line.find_first_of("\t\r", tab + 1);
  if (end == std::string::npos) end = line.size();
  const auto parsed = std::from_chars(line.data() + tab + 1, line.data() + end, *number);
  return parsed.ec == std::errc() && parsed.ptr == line.data() + end && *number >= 0;
}

Status bad_line(const std::string& path, size_t line, const std::string& expected) {
  return {StatusCode::kBadInput, "fieldlengthhistogram=" + path + ", line " + std::to_string(line) +
                                     ": expected " + expected};
}

}  // namespace

FieldLengths FieldLengths::constant(uint32_t bytes) {
  FieldLengths lengths;
  lengths.maximum_ = bytes;
  return lengths;
}

Status FieldLengths::from(const Properties& properties, FieldLengths* out) {
  std::string kind = "constant";
  int64_t longest = 100;
  int64_t shortest = 1;
  Status status = properties.choice("fieldlengthdistribution",
                                    {"constant", "uniform", "zipfian", "histogram"}, &kind);
  if (status.is_ok()) status = properties.integer("fieldlength", 0, kLongestField, &longest);
  if (status.is_ok()) status = properties.integer("minfieldlength", 0, kLongestField, &shortest);
  if (!status.is_ok()) return status;
  out->minimum_ = static_cast<uint32_t>(shortest);
  out->maximum_ = static_cast<uint32_t>(longest);
  if (kind == "constant") return Status::ok();
  if (kind == "histogram")
    return out->load_histogram(properties.text("fieldlengthhistogram", "hist.txt"));
  if (shortest > longest)
    return {StatusCode::kBadInput, "property minfieldlength=" + std::to_string(shortest) +
                                       ": expected at most fieldlength, which is " +
                                       std::to_string(longest)};
  out->kind_ = kind == "uniform" ? Kind::kUniform : Kind::kZipfian;
  if (out->kind_ == Kind::kZipfian)
    out->zipfian_.emplace(static_cast<uint64_t>(longest - shortest + 1));
  return Status::ok();
}

Status FieldLengths::load_histogram(const std::string& path) {
  kind_ = Kind::kHistogram;
  std::string text;
  if (Status status = read_input("property fieldlengthhistogram=", path, kLongestHistogram, &text);
      !status.is_ok())
    return status;
  std::istringstream in(text);
  std::string line;
  std::string name;
  int64_t number = 0;
  if (!std::getline(in, line) || !split_line(line, &name, &number) || name != "BlockSize" ||
      number == 0 || number > kLongestField)
    return bad_line(path, 1, "BlockSize, a tab and the bytes of a block");
  block_bytes_ = static_cast<uint32_t>(number);
  for (size_t line_number = 2; std::getline(in, line); ++line_number) {
    if (line.empty()) continue;
    if (!split_line(line, &name, &number) || name != std::to_string(counts_.size()))
      return bad_line(path, line_number, std::to_string(counts_.size()) + ", a tab and a count");
    counts_.push_back(number);
    total_count_ += number;
  }
  const int64_t longest = static_cast<int64_t>(counts_.size()) * block_bytes_;
  if (total_count_ == 0 || total_count_ > std::numeric_limits<int32_t>::max() ||
      longest > kLongestField)
    return bad_line(path, counts_.size() + 1,
                    "counts that add up to 1 to 2147483647 and fields of at most 1 GiB");
  maximum_ = static_cast<uint32_t>(longest);
  return Status::ok();
}

// Draws as YCSB's HistogramGenerator does: bucket i gives (i + 1) blocks, a draw on the upper bound
// of a bucket still belongs to it, and the last bucket gives one block fewer than its number
// implies.
uint32_t FieldLengths::draw_histogram(Random& random) const {
  int64_t number = static_cast<int64_t>(random.below(static_cast<uint64_t>(total_count_)));
  size_t bucket = 0;
  for (; bucket + 1 < counts_.size(); ++bucket) {
    number -= counts_[bucket];
    if (number <= 0) return static_cast<uint32_t>(bucket + 1) * block_bytes_;
  }
  return static_cast<uint32_t>(bucket) * block_bytes_;
}

uint32_t FieldLengths::draw(Random& random) const {
  switch (kind_) {
    case Kind::kConstant:
      return maximum_;
    case Kind::kUniform:
      return minimum_ + static_cast<uint32_t>(random.below(uint64_t{maximum_} - minimum_ + 1));
    case Kind::kZipfian:
      return minimum_ + static_cast<uint32_t>(zipfian_->draw(random));
    case Kind::kHistogram:
      return draw_histogram(random);
  }
  return maximum_;
}

}  // namespace opjoule
