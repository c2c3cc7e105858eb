// A program's own output: JSON lines on stdout, one error line on stderr.
//
// Thread safety: each line is one write().
#pragma once

#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

// One line of JSON text on stdout.
void print_line(const std::string& json);
// `text` for a terminal: what is no character of UTF-8, or would move the cursor, becomes '?'.
std::string one_line(std::string_view text);
// "PROGRAM: message" on stderr; gives the exit code of the status.
int report_failure(const Status& status, std::string_view program = "loader");

}  // namespace opjoule
