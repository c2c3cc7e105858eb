// The seccomp filter that makes a program's sync calls wait for the simulated medium.
//
// fsync, fdatasync, msync(MS_SYNC), sync_file_range, sync, syncfs, openat2, and openat or open with
// O_DSYNC, O_SYNC or O_DIRECT are told to the listener (SECCOMP_RET_USER_NOTIF,
// seccomp_unotify(2)), as are writes through a descriptor of the range that is kept for files
// opened so or through the standard output, where dd moves its file, and pwritev2 with RWF_DSYNC or
// RWF_SYNC. io_uring_setup fails with ENOSYS, since writes and syncs through a ring would be
// seen by nobody. Everything else runs as ever. Programs of another architecture than this
// program's are not slowed, but for 32-bit Arm on a 64-bit one.
//
// Thread safety: free functions; install_filter concerns the calling thread alone.
#pragma once

#include <linux/seccomp.h>

#include <cstdint>

#include "loader/status.h"

namespace opjoule {

// Descriptors that files opened with O_DSYNC, O_SYNC or O_DIRECT get: first and one past the last.
struct DescriptorRange {
  int first = 0;
  int end = 0;
};

// The last ones below the limit on open files of this process (RLIMIT_NOFILE), but not beyond 4096.
DescriptorRange synced_descriptors();

// Installs the filter, which stays for good, children included; gives the listener. kUnsupported
// where the kernel forbids it.
Status install_filter(const DescriptorRange& synced, int* listener);

enum class Call {
  kFsync,  // and fdatasync
  kMsync,
  kSyncFileRange,
  kSync,
  kSyncfs,
  kOpen,
  kOpenHow,  // openat2
  kWrite,    // through a descriptor of the range, or the standard output
  kWritev,   // so, too, or with RWF_DSYNC
};

struct TrappedCall {
  Call call = Call::kFsync;
  int fd = -1;           // of kOpen and kOpenHow: the folder
  uint64_t address = 0;  // msync, of the path of an open, of the vectors of kWritev
  uint64_t how = 0;      // of kOpenHow: address of the struct open_how
  uint64_t offset = 0;   // of sync_file_range
  // Of sync_file_range, msync, write, the struct open_how; vectors of kWritev; 0: to the end.
  uint64_t length = 0;
  uint64_t flags = 0;
  uint64_t mode = 0;  // of kOpen
};

// What a notification asks for.
TrappedCall trapped_call(const seccomp_data& data);

}  // namespace opjoule
