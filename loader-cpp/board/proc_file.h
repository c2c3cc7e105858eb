// Numbers the kernel keeps about this process and this board.
//
// Thread safety: a ProcFile belongs to one thread; the free functions may be called from any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opjoule {

// A file below /proc that is read repeatedly through one descriptor.
class ProcFile {
 public:
  explicit ProcFile(const char* path);
  ~ProcFile();
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;

  // The file's present text, empty where it cannot be read (errno says why). Valid until the next
  // call.
  std::string_view read();

 private:
  int fd_;
  std::string text_;
};

// The first whole number after `label` in `text`, 0 where there is none.
uint64_t number_after(std::string_view text, std::string_view label);

// The `index`-th whole number of `text`, from 0; 0 where there are fewer.
uint64_t nth_number(std::string_view text, int index);

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t anonymous_bytes = 0;
  uint64_t peak_resident_bytes = 0;
};
// From /proc/self/status: VmRSS, RssAnon, VmHWM.
ProcessMemory process_memory();

}  // namespace opjoule
