// What a simulated medium shows: files in the format of the kernel's, and its busy stretches.
//
//     DIR/stat      as /sys/dev/block/MAJOR:MINOR/stat (Linux, Documentation/block/stat.rst)
//     DIR/meminfo   the lines Dirty and Writeback of /proc/meminfo
//     the FIFO      m START_NS END_NS write|read|flush BYTES
//                   q NOW_NS PENDING_BYTES
//
// Each file has always the same length and is rewritten by one write, so that a reader never sees
// half of a line. Thread safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "board/live_feed.h"
#include "medium-sim/medium_queue.h"

namespace opjoule {

class MediumFiles {
 public:
  // Makes the files, and waits for a reader of the FIFO. kBadInput, kIo.
  static Status open(const std::string& folder, const std::string& fifo,
                     std::unique_ptr<MediumFiles>* out);
  ~MediumFiles();
  MediumFiles(const MediumFiles&) = delete;
  MediumFiles& operator=(const MediumFiles&) = delete;

  // The state at `now_ns`, everything busy before it included.
  void write(int64_t now_ns, MediumQueue* queue);
  // Lines of the FIFO that its reader was too slow for.
  [[nodiscard]] uint64_t left_out() const { return live_ ? live_->left_out() : 0; }

 private:
  MediumFiles() = default;
  int stat_ = -1;
  int meminfo_ = -1;
  std::string shown_stat_;
  std::string shown_meminfo_;
  std::unique_ptr<LiveFeed> live_;
};

// The line of DIR/stat.
std::string stat_line(const MediumCounters& completed, bool busy);
std::string meminfo_lines(uint64_t dirty_bytes, uint64_t writeback_bytes);

}  // namespace opjoule
