#include "board/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace opjoule {

ProcFile::ProcFile(const char* path) : fd_(::open(path, O_RDONLY | O_CLOEXEC)) {
  text_.resize(4096);
}

ProcFile::~ProcFile() {
  if (fd_ >= 0) ::close(fd_);
}

std::string_view ProcFile::read() {
  size_t size = 0;
  while (fd_ >= 0) {
    if (size == text_.size()) text_.resize(text_.size() * 2);
    const ssize_t got =
        ::pread(fd_, text_.data() + size, text_.size() - size, static_cast<off_t>(size));
    if (got <= 0) break;
    size += static_cast<size_t>(got);
  }
  return {text_.data(), size};
}

uint64_t number_after(std::string_view text, std::string_view label) {
  size_t at = text.find(label);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + label.size());
  if (at == std::string_view::npos) return 0;
  uint64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

uint64_t nth_number(std::string_view text, int index) {
  const char* at = text.data();
  const char* end = at + text.size();
  uint64_t number = 0;
  for (int i = 0; i <= index; ++i) {
    while (at < end && *at == ' ') ++at;
    const auto parsed = std::from_chars(at, end, number);
    if (parsed.ec != std::errc()) return 0;
    at = parsed.ptr;
  }
  return number;
}

ProcessMemory process_memory() {
  ProcFile status("/proc/self/status");
  const std::string_view text = status.read();
  return {number_after(text, "VmRSS:") * 1024, number_after(text, "RssAnon:") * 1024,
          number_after(text, "VmHWM:") * 1024};
}

}  // namespace opjoule
