// How many bytes the watched processes may have dirtied by calls: the most that the kernel's count
// of dirtied bytes is believed.
//
// Where the page cache has large folios (ext4 from Linux 6.16, XFS), the kernel counts a small
// write into a large cached file as the whole folio, up to some MiB, and writes the blocks alone
// that changed (fs/buffer.c, fs/iomap/buffered-io.c). A page that is written through a shared
// mapping does dirty its folio: a process that maps a file so is believed.
//
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "board/proc_file.h"

namespace opjoule {

class WrittenByCalls {
 public:
  struct Growth {
    uint64_t bytes;  // of pages that calls touched
    bool is_all;     // false where a process has come or gone: there were calls that nobody saw
  };

  // What calls of these processes touched since the last call.
  Growth grown(const std::vector<pid_t>& pids);
  // What of `dirtied` bytes, as the kernel counts them, is believed. A folio is counted whole with
  // its first byte and a call when it ends: what is not believed now may be later, as calls follow.
  uint64_t believed(uint64_t dirtied, const Growth& by_calls, const std::vector<pid_t>& pids);

 private:
  struct Process {
    std::unique_ptr<ProcFile> io;
    uint64_t bytes = 0;
    uint64_t calls = 0;
    bool maps_files = false;
    int looks_left = 0;  // until its mappings are read anew
  };
  bool maps_files(const std::vector<pid_t>& pids);

  std::map<pid_t, Process> processes_;
  uint64_t left_over_ = 0;  // not believed yet
  uint64_t spare_ = 0;      // by calls of the last look, of which nothing was dirtied
};

// Whether a text as of /proc/PID/maps has a file mapped shared and writable.
bool maps_file_writable(std::string_view maps);

}  // namespace opjoule
