// Counters of the whole board: processors, a storage device, memory still to be written back. Made
// to be read often.
//
// Thread safety: an object belongs to one thread; pending_write_bytes() may be called from any.
#pragma once

#include <cstdint>
#include <string>

#include "board/proc_file.h"

namespace opjoule {

struct BoardCounters {
  double cpu_busy_s = 0;           // all processors, since boot, without idle and waiting for I/O
  uint64_t device_read_bytes = 0;  // of the watched block device, since boot; 0 if there is none
  uint64_t device_written_bytes = 0;
  uint64_t dirty_bytes = 0;  // of all file systems: dirty, or being written back
  uint64_t forks = 0;        // processes and threads made since boot
};

class BoardCounterFiles {
 public:
  // path: any file or folder on the device to watch, which need not exist yet; empty for none.
  // kernel_files: a folder whose `stat` and `meminfo` stand for the device's and the memory's;
  // empty for the kernel's own.
  explicit BoardCounterFiles(const std::string& path, const std::string& kernel_files = "");
  BoardCounters read();

 private:
  ProcFile stat_{"/proc/stat"};
  ProcFile device_;  // docs.kernel.org, block/stat: the device's part of /proc/diskstats
  ProcFile memory_;
};

// BoardCounters::dirty_bytes alone.
uint64_t pending_write_bytes(const std::string& kernel_files = "");

}  // namespace opjoule
