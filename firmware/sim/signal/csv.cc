#include "signal/csv.h"

#include <charconv>
#include <cmath>
#include <fstream>

#include "errors.h"

namespace opjoule::rig {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string joined(const std::vector<std::string>& columns) {
  std::string text;
  for (const auto& column : columns) text += (text.empty() ? "" : ",") + column;
  return text;
}

bool is_header(const std::vector<std::string_view>& fields,
               const std::vector<std::string>& columns) {
  return std::vector<std::string>(fields.begin(), fields.end()) == columns;
}

std::vector<double> parse_row(const std::vector<std::string_view>& fields, std::size_t columns,
                              const std::string& where, const std::string& expected) {
  if (fields.size() != columns)
    throw RigError(where + ": " + std::to_string(fields.size()) + " fields, expected " + expected);
  std::vector<double> row(columns);
  for (std::size_t i = 0; i < columns; ++i)
    if (!parse_number(fields[i], row[i]))
      throw RigError(where + ": '" + std::string(fields[i]) + "' is not a number; expected " +
                     expected);
  return row;
}

}  // namespace

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

bool parse_integer(std::string_view text, long long& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto cut = text.find(separator);
    fields.push_back(trim(text.substr(0, cut)));
    if (cut == std::string_view::npos) return fields;
    text.remove_prefix(cut + 1);
  }
}

std::vector<std::vector<double>> read_csv(const std::string& path,
                                          const std::vector<std::string>& columns) {
  std::ifstream file(path);
  if (!file) throw RigError("cannot read " + path + ": give the path of an existing CSV file");
  std::vector<std::vector<double>> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const auto text = trim(line);
    if (text.empty() || text.front() == '#') continue;
    const auto fields = split(text, ',');
    if (rows.empty() && is_header(fields, columns)) continue;
    rows.push_back(parse_row(fields, columns.size(), path + " line " + std::to_string(number),
                             joined(columns)));
  }
  return rows;
}

}  // namespace opjoule::rig
