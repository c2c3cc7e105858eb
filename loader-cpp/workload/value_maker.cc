#include <numeric>

#include "workload/generator.h"

namespace opjoule {

ValueMaker::ValueMaker(const WorkloadSettings& settings, uint32_t thread, Random& random)
    : settings_(settings),
      random_(random),
      bytes_(settings.seed, thread, settings.value_characters, settings.value_compress_ratio,
             settings.value_text),
      numbers_(settings.field_count),
      lengths_(settings.field_count, settings.field_lengths.maximum()) {
  std::iota(numbers_.begin(), numbers_.end(), uint16_t{0});
}

void ValueMaker::whole(const std::string& key, Row& out) {
  const bool constant = settings_.field_lengths.is_constant();
  if (!constant)
    for (uint32_t& length : lengths_) length = settings_.field_lengths.draw(random_);
  if (!constant || !out.reset_even(lengths_.size(), lengths_.front()))
    out.reset(numbers_, lengths_);
  fill(key, out);
}

void ValueMaker::single(const std::string& key, Row& out) {
  const uint16_t number = static_cast<uint16_t>(random_.below(settings_.field_count));
  const uint32_t length = settings_.field_lengths.draw(random_);
  out.reset({&number, 1}, {&length, 1});
  fill(key, out);
}

void ValueMaker::fill(const std::string& key, Row& out) {
  if (!settings_.data_integrity && !bytes_.compressible()) {
    bytes_.fill_random(out.mutable_values());
    return;
  }
  for (size_t i = 0; i < out.field_count(); ++i) {
    if (settings_.data_integrity) {
      field_name_ = settings_.field_prefix + std::to_string(out.field_number(i));
      deterministic_value(key, field_name_, out.mutable_value(i));
    } else {
      bytes_.fill(out.mutable_value(i));
    }
  }
}

Status verify_values(const WorkloadSettings& settings, const std::string& key, FieldChoice fields,
                     const Row& found) {
  std::string expected(settings.field_lengths.maximum(), '\0');
  const uint16_t first = fields.all ? 0 : fields.number;
  const uint16_t end = fields.all ? settings.field_count : static_cast<uint16_t>(first + 1);
  for (uint16_t number = first; number < end; ++number) {
    const std::string name = settings.field_prefix + std::to_string(number);
    deterministic_value(key, name, expected);
    const std::string_view value = found.find(number);
    if (value != expected || value.data() == nullptr)
      return {StatusCode::kCorrupt, "record " + key + ", " + name + ": holds " +
                                        std::to_string(value.size()) +
                                        " bytes that are not the ones that were loaded; was it "
                                        "loaded with dataintegrity=true, and "
                                        "the same fieldlength?"};
  }
  return Status::ok();
}

}  // namespace opjoule
