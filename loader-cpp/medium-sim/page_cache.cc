#include "medium-sim/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "board/clock.h"
#include "medium-sim/program_files.h"

namespace opjoule {
namespace {

constexpr uint64_t kPieceBytes = 64 * 1024;  // evicted at once
constexpr int kTrialsMax = 4096;             // pieces looked at before the limit is given up
constexpr uint64_t kRoom = 64;               // this part of the limit is made free at once

// The kernel counts a read when it begins, and its pages are cached, and can be evicted, once the
// disk has answered: the files are looked at again for some time. A wake-up that is lost, because
// those who count do not wait for the lock, comes with the next look.
constexpr std::chrono::milliseconds kLookEach{50};
constexpr int64_t kLooksAgainNs = 1'000'000'000;

Descriptor opened(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

// Bytes of a part of a file that are in this computer's memory; `offset` is of a page.
uint64_t cached_bytes_of(int fd, uint64_t offset, uint64_t bytes) {
  static const auto kPageBytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (bytes == 0) return 0;
  void* start = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (start == MAP_FAILED) return 0;
  std::vector<unsigned char> pages((bytes + kPageBytes - 1) / kPageBytes);
  const bool known = ::mincore(start, bytes, pages.data()) == 0;
  ::munmap(start, bytes);
  if (!known) return 0;
  return kPageBytes * static_cast<uint64_t>(std::count_if(
                          pages.begin(), pages.end(), [](unsigned char page) { return page & 1; }));
}

template <typename Files>
uint64_t cached_bytes(const Files& files) {
  uint64_t bytes = 0;
  for (const auto& file : files)
    if (const Descriptor fd = opened(file.path); fd.valid())
      bytes += cached_bytes_of(fd.get(), 0, file.bytes);
  return bytes;
}

void evict(int fd, uint64_t offset, uint64_t bytes) {
  ::posix_fadvise(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace

PageCache::PageCache(std::string folder, uint64_t limit_bytes)
    : folder_(std::move(folder)), limit_bytes_(limit_bytes) {
  if (limit_bytes_ > 0) thread_ = std::thread([this] { work(); });
}

PageCache::~PageCache() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

CachedBytes PageCache::drop() {
  const std::lock_guard lock(mutex_);
  const std::vector<File> all = files();
  CachedBytes bytes{cached_bytes(all), 0};
  for (const File& file : all) {
    const Descriptor fd = opened(file.path);
    if (!fd.valid()) continue;
    ::fdatasync(fd.get());
    evict(fd.get(), 0, 0);
  }
  bytes.left = cached_bytes(all);
  at_most_bytes_ = bytes.left;
  return bytes;
}

void PageCache::grown(uint64_t bytes) {
  at_most_bytes_ += bytes;
  if (limit_bytes_ > 0 && at_most_bytes_ > limit_bytes_) wake_.notify_one();
}

void PageCache::work() {
  std::unique_lock lock(mutex_);
  int64_t look_until_ns = 0;
  while (true) {
    wake_.wait_for(lock, kLookEach, [this] { return stopping_ || at_most_bytes_ > limit_bytes_; });
    if (stopping_) return;
    const bool grown = at_most_bytes_ > limit_bytes_;
    if (!grown && board_ns() > look_until_ns) continue;
    if (const bool evicted = make_room(); evicted || grown)
      look_until_ns = board_ns() + kLooksAgainNs;
  }
}

bool PageCache::make_room() {
  const uint64_t believed = at_most_bytes_;
  const std::vector<File> all = files();
  const uint64_t cached = cached_bytes(all);
  const uint64_t goal = limit_bytes_ - limit_bytes_ / kRoom;
  const uint64_t evicted = cached > goal ? evict_some(all, cached - goal) : 0;
  const uint64_t left = cached - std::min(evicted, cached);
  if (left > limit_bytes_) beyond_bytes_ = std::max<uint64_t>(beyond_bytes_, left - limit_bytes_);
  at_most_bytes_ += std::min(left, goal) - believed;  // a rest is tried again with the next room
  return evicted > 0;
}

uint64_t PageCache::evict_some(const std::vector<File>& files, uint64_t bytes) {
  std::vector<double> sizes;
  for (const File& file : files) sizes.push_back(static_cast<double>(file.bytes));
  if (std::accumulate(sizes.begin(), sizes.end(), 0.0) <= 0) return 0;
  std::discrete_distribution<size_t> any_file(sizes.begin(), sizes.end());
  uint64_t evicted = 0;
  for (int trial = 0; trial < kTrialsMax && evicted < bytes; ++trial) {
    const File& file = files[any_file(random_)];
    std::uniform_int_distribution<uint64_t> any_piece(0, (file.bytes - 1) / kPieceBytes);
    const uint64_t offset = any_piece(random_) * kPieceBytes;
    const uint64_t length = std::min(kPieceBytes, file.bytes - offset);
    const Descriptor fd = opened(file.path);
    if (!fd.valid()) continue;
    const uint64_t before = cached_bytes_of(fd.get(), offset, length);
    if (before == 0) continue;
    evict(fd.get(), offset, length);
    evicted += before - std::min(before, cached_bytes_of(fd.get(), offset, length));
  }
  return evicted;
}

std::vector<PageCache::File> PageCache::files() const {
  namespace fs = std::filesystem;
  std::vector<File> all;
  std::error_code gone;  // files come and go meanwhile
  fs::recursive_directory_iterator at(folder_, fs::directory_options::skip_permission_denied, gone);
  for (; !gone && at != fs::recursive_directory_iterator(); at.increment(gone)) {
    std::error_code none;
    if (!fs::is_regular_file(at->symlink_status(none))) continue;
    const uint64_t bytes = fs::file_size(at->path(), none);
    if (!none && bytes > 0) all.push_back({at->path(), bytes});
  }
  return all;
}

}  // namespace opjoule
