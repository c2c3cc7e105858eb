// Files of another process: copies of its descriptors, what it has mapped, what it wants to open,
// and how much of a file is dirty.
//
// Each works for processes of the same user; where the kernel forbids it (Yama's ptrace_scope), the
// second-best way is tried, as said. Thread safety: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "medium-sim/filter.h"

namespace opjoule {

// A descriptor of this process, closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// The file behind descriptor `fd` of thread `tid`: a copy that shares its state (pidfd_getfd(2)).
// Where that is forbidden the file is opened anew for reading. Not valid with errno otherwise.
Descriptor copy_descriptor(pid_t tid, int fd);

// The file that is mapped shared over all of a range of addresses, and where in the file. Not valid
// where there is none.
struct MappedFile {
  Descriptor file;
  uint64_t offset = 0;
};
MappedFile mapped_file(pid_t tid, uint64_t address, uint64_t length);

// Flags and mode of a call of Call::kOpenHow, which lie in the thread's memory. False where they
// cannot be read, or where the call restricts how the path is looked up (`resolve`).
bool read_how(pid_t tid, TrappedCall* call);

// Opens what a call asks for, without O_DSYNC and O_SYNC, and without O_DIRECT where it is only
// written: the page cache is quicker than the medium that the writes wait for. With the umask of
// the caller. Not valid with errno where that fails.
Descriptor open_for(pid_t tid, const TrappedCall& call);

// Whether a number of a descriptor is free there.
bool descriptor_is_free(pid_t tid, int number);

// Bytes of a range of a file (length 0: to its end) that are dirty or being written back in the
// kernel's page cache (cachestat(2), Linux 6.5); `otherwise` where the kernel cannot tell.
uint64_t dirty_bytes_of(int fd, uint64_t offset, uint64_t length, uint64_t otherwise);

// Sum of the lengths of `count` vectors (struct iovec) at an address; 0 where it cannot be read.
uint64_t vectors_bytes(pid_t tid, uint64_t address, uint64_t count);

}  // namespace opjoule
