#include <algorithm>
#include <charconv>
#include <cstring>

#include "workload/trace.h"

namespace opjoule {
namespace {

constexpr std::string_view kAllFields = "<all fields>]";
constexpr size_t kShownName = 60;  // bytes of a wrong name in its message

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool TraceParser::fail(TraceFault* fault, std::string expected) const {
  fault->column = at_;
  fault->expected = std::move(expected);
  return false;
}

bool TraceParser::take(std::string_view text) {
  if (!line_.substr(at_).starts_with(text)) return false;
  at_ += text.size();
  return true;
}

// Up to the next space or the end of the line; not empty.
bool TraceParser::take_word(std::string_view* word) {
  const size_t end = std::min(line_.find(' ', at_), line_.size());
  *word = line_.substr(at_, end - at_);
  if (word->empty()) return false;
  at_ = end;
  return true;
}

bool TraceParser::parse(std::string_view line, Operation* out, TraceFault* fault) {
  line_ = line;
  at_ = 0;
  out->scan_length = 0;  // `out` may hold an earlier scan
  if (take("READ "))
    out->kind = OperationKind::kRead;
  else if (take("UPDATE "))
    out->kind = OperationKind::kUpdate;
  else if (take("INSERT "))
    out->kind = OperationKind::kInsert;
  else if (take("SCAN "))
    out->kind = OperationKind::kScan;
  else if (take("DELETE "))
    out->kind = OperationKind::kRemove;
  else
    return fail(fault, "READ, UPDATE, INSERT, SCAN or DELETE");
  std::string_view word;
  const size_t table_at = at_;
  if (!take_word(&word) || !take(" ")) return fail(fault, "a table name and a space");
  if (word != settings_.table) {
    at_ = table_at;
    return fail(fault, "table " + settings_.table + " (property table), not " +
                           std::string(word.substr(0, kShownName)));
  }
  if (!take_word(&word)) return fail(fault, "a key");
  out->key.assign(word);
  if (out->kind == OperationKind::kRemove)
    return at_ == line_.size() ? true : fail(fault, "the end of the line");
  if (out->kind == OperationKind::kScan) {
    if (!take(" ") || !take_word(&word)) return fail(fault, "a space and a number of records");
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), out->scan_length);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size())
      return fail(fault, "a number of records");
  }
  if (!take(" [ ")) return fail(fault, "' [ '");
  const bool writes = out->kind == OperationKind::kUpdate || out->kind == OperationKind::kInsert;
  return writes ? parse_values(out, fault) : parse_choice(out, fault);
}

bool TraceParser::parse_choice(Operation* out, TraceFault* fault) {
  out->fields = {};
  if (take(kAllFields)) return at_ == line_.size() ? true : fail(fault, "the end of the line");
  size_t count = 0;
  std::string_view word;
  while (!take("]")) {
    const size_t name_at = at_;
    uint16_t number = 0;
    if (!take_word(&word) || !word.starts_with(settings_.field_prefix) || !take(" ")) {
      at_ = name_at;
      return fail(fault, "a field name and a space, '<all fields>]' or ']'");
    }
    word.remove_prefix(settings_.field_prefix.size());
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    if (parsed.ec != std::errc() || number >= settings_.field_count) {
      at_ = name_at;
      return fail(fault, "a field of the " + std::to_string(settings_.field_count) + " there are");
    }
    out->fields = {false, number};
    ++count;
  }
  if (at_ != line_.size()) return fail(fault, "the end of the line");
  if (count != 1) out->fields = {};  // engines read one field or all
  return true;
}

// Whether the '=' at `equals` ends a field name that this line has not had yet.
bool TraceParser::is_new_field(size_t equals, Field* field) const {
  size_t digits = equals;
  while (digits > at_ && is_digit(line_[digits - 1])) --digits;
  const std::string_view prefix = settings_.field_prefix;
  digits += prefix.size() - 1 - prefix.find_last_not_of("0123456789");  // of the prefix's own end
  if (digits >= equals || digits < at_ + prefix.size()) return false;
  const size_t name_at = digits - prefix.size();
  if (line_.substr(name_at, prefix.size()) != prefix) return false;
  if (name_at != at_ && line_[name_at - 1] != ' ') return false;
  unsigned number = 0;
  const auto parsed = std::from_chars(line_.data() + digits, line_.data() + equals, number);
  if (parsed.ec != std::errc() || number > 65535) return false;
  for (const Field& seen : fields_)
    if (seen.number == number) return false;
  *field = {static_cast<uint16_t>(number), name_at, equals + 1, 0};
  return true;
}

bool TraceParser::find_fields(TraceFault* fault) {
  fields_.clear();
  if (!line_.ends_with(" ]")) {
    at_ = line_.size();
    return fail(fault, "' ]' at the end of the line");
  }
  const size_t end = line_.size() - 2;
  for (size_t equals = line_.find('=', at_); equals < end; equals = line_.find('=', equals + 1)) {
    Field field;
    if (!is_new_field(equals, &field)) continue;
    if (fields_.empty() && field.name_at != at_) break;
    if (!fields_.empty()) fields_.back().value_end = field.name_at - 1;
    fields_.push_back(field);
  }
  if (fields_.empty()) return fail(fault, settings_.field_prefix + " with a number and '='");
  fields_.back().value_end = end;
  for (const Field& field : fields_) {
    if (field.number < settings_.field_count) continue;
    at_ = field.name_at;
    return fail(fault, "a field of the " + std::to_string(settings_.field_count) +
                           " there are (property fieldcount)");
  }
  return true;
}

bool TraceParser::parse_values(Operation* out, TraceFault* fault) {
  if (!find_fields(fault)) return false;
  std::sort(fields_.begin(), fields_.end(),
            [](const Field& a, const Field& b) { return a.number < b.number; });
  numbers_.clear();
  lengths_.clear();
  for (const Field& field : fields_) {
    numbers_.push_back(field.number);
    lengths_.push_back(static_cast<uint32_t>(field.value_end - field.value_at));
  }
  out->values.reset(numbers_, lengths_);
  char* to = out->values.mutable_values().data();
  for (const Field& field : fields_) {
    const size_t length = field.value_end - field.value_at;
    std::memcpy(to, line_.data() + field.value_at, length);
    to += length;
  }
  out->whole = fields_.size() == settings_.field_count;
  return true;
}

void append_trace(const WorkloadSettings& settings, const Operation& operation, std::string& out) {
  const auto begin = [&](const char* verb) {
    out.append(verb).append(" ").append(settings.table).append(" ").append(operation.key);
  };
  const auto choice = [&] {
    if (operation.fields.all)
      out.append(" [ <all fields>]\n");
    else
      out.append(" [ ")
          .append(settings.field_prefix)
          .append(std::to_string(operation.fields.number))
          .append(" ]\n");
  };
  const auto values = [&] {
    out.append(" [ ");
    for (size_t i = 0; i < operation.values.field_count(); ++i)
      out.append(settings.field_prefix)
          .append(std::to_string(operation.values.field_number(i)))
          .append("=")
          .append(operation.values.value(i))
          .append(" ");
    out.append("]\n");
  };
  switch (operation.kind) {
    case OperationKind::kRead:
      begin("READ");
      choice();
      break;
    case OperationKind::kReadModifyWrite:
      begin("READ");
      choice();
      [[fallthrough]];
    case OperationKind::kUpdate:
      begin("UPDATE");
      values();
      break;
    case OperationKind::kInsert:
      begin("INSERT");
      values();
      break;
    case OperationKind::kScan:
      begin("SCAN");
      out.append(" ").append(std::to_string(operation.scan_length));
      choice();
      break;
    case OperationKind::kRemove:
      begin("DELETE");
      out.append("\n");
      break;
  }
}

}  // namespace opjoule
