#include "board/output.h"

#include <unistd.h>

#include "board/exit_code.h"
#include "board/write_all.h"

namespace opjoule {

void print_line(const std::string& json) { write_all(STDOUT_FILENO, json + "\n"); }

namespace {

// Bytes of a character that starts with `first`, in UTF-8; 0 where none does.
size_t character_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

bool is_whole(std::string_view text, size_t at, size_t bytes) {
  if (bytes == 0 || at + bytes > text.size()) return false;
  for (size_t i = 1; i < bytes; ++i)
    if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return false;
  return true;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const size_t bytes = character_bytes(first);
    if (first < ' ' || first == 0x7f || !is_whole(text, at, bytes)) {
      out.push_back('?');
      ++at;
      continue;
    }
    out.append(text.substr(at, bytes));
    at += bytes;
  }
  return out;
}

int report_failure(const Status& status, std::string_view program) {
  write_all(STDERR_FILENO, std::string(program) + ": " + one_line(status.message()) + "\n");
  return exit_code(status.code());
}

}  // namespace opjoule
