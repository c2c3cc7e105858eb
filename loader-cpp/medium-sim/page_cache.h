// The page cache of the simulated board, for the files on its medium: this computer's page cache,
// dropped and bounded. What is evicted here is read again from this computer's disk, and the kernel
// counts that for the thread that reads (read_bytes in /proc/PID/io, reads of mapped files too).
//
// The least recently used pages are not known to a program, so random ones make room. Pages that
// are dirty, or mapped by a program that runs, cannot be evicted.
//
// A thread of its own evicts, since a walk through many files takes long. Thread safety: the public
// functions belong to one thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace opjoule {

// Bytes of the files in a page cache.
struct CachedBytes {
  uint64_t before = 0;
  uint64_t left = 0;
};

class PageCache {
 public:
  // `folder`: that of the medium's files; `limit_bytes`: most bytes of them in memory, 0: no limit.
  PageCache(std::string folder, uint64_t limit_bytes);
  ~PageCache();
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  // Writes back the folder's dirty pages and evicts all of its pages.
  CachedBytes drop();
  // Programs have read so many bytes from the medium or dirtied them: so many more may be cached.
  void grown(uint64_t bytes);
  // Most bytes beyond the limit that could not be evicted.
  [[nodiscard]] uint64_t beyond_bytes() const { return beyond_bytes_; }

 private:
  struct File {
    std::string path;
    uint64_t bytes;
  };
  void work();
  bool make_room();  // whether anything was evicted
  uint64_t evict_some(const std::vector<File>& files, uint64_t bytes);
  [[nodiscard]] std::vector<File> files() const;

  const std::string folder_;
  const uint64_t limit_bytes_;
  std::atomic<uint64_t> at_most_bytes_ = 0;  // cached
  std::atomic<uint64_t> beyond_bytes_ = 0;
  std::minstd_rand random_;
  std::mutex mutex_;  // of the one that evicts
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace opjoule
