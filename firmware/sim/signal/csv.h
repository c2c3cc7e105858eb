// Reads numeric CSV files and lines, with errors that name file and line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace opjoule::rig {

/// Rows of `columns` numbers each, in file order. The header line may be left out; blank lines and
/// lines that start with '#' are skipped.
/// Throws RigError: file unreadable, wrong header, wrong number of fields, or not a finite number.
std::vector<std::vector<double>> read_csv(const std::string& path,
                                          const std::vector<std::string>& columns);

/// True and sets `value` if all of `text` is one finite decimal number.
bool parse_number(std::string_view text, double& value);

/// True and sets `value` if all of `text` is one decimal integer.
bool parse_integer(std::string_view text, long long& value);

/// `text` cut at each `separator`, with spaces around each field removed.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace opjoule::rig
