#include "medium-sim/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "loader/system_error.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)  // Linux 5.19
#endif

namespace opjoule {
namespace {

constexpr int kRangeSize = 64;
constexpr uint64_t kRangeEndMax = 4096;
constexpr uint32_t kSyncedWrite = 0x2 | 0x4;       // RWF_DSYNC, RWF_SYNC
constexpr uint32_t kThrough = O_DSYNC | O_DIRECT;  // of an open; O_SYNC has the bit of O_DSYNC
constexpr uint32_t kNotify = SECCOMP_RET_USER_NOTIF;

enum class Trap { kAlways, kFlags, kRange, kFails };

// A system call of an architecture, and when it is trapped.
struct Rule {
  uint32_t number;
  Call call;
  Trap trap;
  int argument = 0;  // that the flags are in
  uint32_t mask = 0;
};

struct Architecture {
  uint32_t audit;
  std::vector<Rule> rules;
};

// Numbers: Linux, arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h,
// arch/arm/tools/syscall.tbl.
const std::vector<Architecture>& architectures() {
#if defined(__x86_64__)
  static const std::vector<Architecture> all = {
      {AUDIT_ARCH_X86_64,
       {{1, Call::kWrite, Trap::kRange},
        {18, Call::kWrite, Trap::kRange},
        {20, Call::kWritev, Trap::kRange},
        {296, Call::kWritev, Trap::kRange},
        {328, Call::kWritev, Trap::kFlags, 5, kSyncedWrite},
        {257, Call::kOpen, Trap::kFlags, 2, kThrough},
        {2, Call::kOpen, Trap::kFlags, 1, kThrough},
        {74, Call::kFsync, Trap::kAlways},
        {75, Call::kFsync, Trap::kAlways},
        {26, Call::kMsync, Trap::kFlags, 2, MS_SYNC},
        {277, Call::kSyncFileRange, Trap::kAlways},
        {162, Call::kSync, Trap::kAlways},
        {306, Call::kSyncfs, Trap::kAlways},
        {437, Call::kOpenHow, Trap::kAlways},
        {425, Call::kSync, Trap::kFails}}}};
#else
  static const std::vector<Architecture> all = {
#if defined(__aarch64__)
      {AUDIT_ARCH_AARCH64,
       {{64, Call::kWrite, Trap::kRange},
        {68, Call::kWrite, Trap::kRange},
        {66, Call::kWritev, Trap::kRange},
        {70, Call::kWritev, Trap::kRange},
        {287, Call::kWritev, Trap::kFlags, 5, kSyncedWrite},
        {56, Call::kOpen, Trap::kFlags, 2, kThrough},
        {82, Call::kFsync, Trap::kAlways},
        {83, Call::kFsync, Trap::kAlways},
        {227, Call::kMsync, Trap::kFlags, 2, MS_SYNC},
        {84, Call::kSyncFileRange, Trap::kAlways},
        {81, Call::kSync, Trap::kAlways},
        {267, Call::kSyncfs, Trap::kAlways},
        {437, Call::kOpenHow, Trap::kAlways},
        {425, Call::kSync, Trap::kFails}}},
#endif
      {AUDIT_ARCH_ARM,
       {{4, Call::kWrite, Trap::kRange},
        {181, Call::kWrite, Trap::kRange},
        {146, Call::kWritev, Trap::kRange},
        {362, Call::kWritev, Trap::kRange},
        {393, Call::kWritev, Trap::kFlags, 5, kSyncedWrite},
        {322, Call::kOpen, Trap::kFlags, 2, kThrough},
        {5, Call::kOpen, Trap::kFlags, 1, kThrough},
        {118, Call::kFsync, Trap::kAlways},
        {148, Call::kFsync, Trap::kAlways},
        {144, Call::kMsync, Trap::kFlags, 2, MS_SYNC},
        {341, Call::kSyncFileRange, Trap::kAlways},
        {36, Call::kSync, Trap::kAlways},
        {373, Call::kSyncfs, Trap::kAlways},
        {437, Call::kOpenHow, Trap::kAlways},
        {425, Call::kSync, Trap::kFails}}}};
#endif
  return all;
}

// The low half of an argument; every architecture here is little-endian.
uint32_t argument_at(int index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(index));
}

void append_return(std::vector<sock_filter>* program, uint32_t action) {
  program->push_back(BPF_STMT(BPF_RET | BPF_K, action));
}

std::vector<sock_filter> body(const Rule& rule, const DescriptorRange& synced) {
  std::vector<sock_filter> out;
  switch (rule.trap) {
    case Trap::kAlways:
      break;
    case Trap::kFails:
      append_return(&out, SECCOMP_RET_ERRNO | ENOSYS);
      return out;
    case Trap::kFlags:
      out.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument_at(rule.argument)));
      out.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rule.mask, 1, 0));
      append_return(&out, SECCOMP_RET_ALLOW);
      break;
    case Trap::kRange:
      out.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument_at(0)));
      out.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, STDOUT_FILENO, 3, 0));
      out.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<uint32_t>(synced.first), 0, 1));
      out.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, static_cast<uint32_t>(synced.end), 0, 1));
      append_return(&out, SECCOMP_RET_ALLOW);
      break;
  }
  append_return(&out, kNotify);
  return out;
}

std::vector<sock_filter> make_program(const DescriptorRange& synced) {
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  for (const Architecture& architecture : architectures()) {
    std::vector<sock_filter> part;
    part.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const Rule& rule : architecture.rules) {
      const std::vector<sock_filter> rest = body(rule, synced);
      part.push_back(
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule.number, 0, static_cast<uint8_t>(rest.size())));
      part.insert(part.end(), rest.begin(), rest.end());
    }
    append_return(&part, SECCOMP_RET_ALLOW);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture.audit, 0,
                               static_cast<uint8_t>(part.size())));
    program.insert(program.end(), part.begin(), part.end());
  }
  append_return(&program, SECCOMP_RET_ALLOW);
  return program;
}

}  // namespace

DescriptorRange synced_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int end = static_cast<int>(std::min<uint64_t>(limit.rlim_cur, kRangeEndMax));
  return {std::max(end - kRangeSize, 3), end};
}

Status install_filter(const DescriptorRange& synced, int* listener) {
  if (synced.first <
      kRangeSize) {  // the listener, and the program's own files, would be among them
    return {StatusCode::kUnsupported, "too few open files are allowed: raise 'ulimit -n'"};
  }
  std::vector<sock_filter> program = make_program(synced);
  sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
  const auto install = [&](unsigned long flags) {
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                      SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, &whole));
  };
  const auto install_any = [&] {
    const int fd = install(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
    return fd >= 0 || errno != EINVAL ? fd : install(0);
  };
  *listener = install_any();
  if (*listener < 0 && errno == EACCES) {  // not privileged: only together with this
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return system_error("no_new_privs");
    *listener = install_any();
  }
  if (*listener >= 0) return Status::ok();
  return {StatusCode::kUnsupported, system_error("seccomp filter").message()};
}

TrappedCall trapped_call(const seccomp_data& data) {
  TrappedCall out;
  const auto* args = data.args;
  for (const Architecture& architecture : architectures()) {
    if (architecture.audit != data.arch) continue;
    for (const Rule& rule : architecture.rules) {
      if (rule.number != static_cast<uint32_t>(data.nr)) continue;
      out.call = rule.call;
      out.fd = static_cast<int>(args[0]);
      switch (rule.call) {
        case Call::kOpen: {
          const int at = rule.argument;  // open: path, flags, mode; openat: one later
          out.fd = at == 2 ? static_cast<int>(args[0]) : AT_FDCWD;
          out.address = args[at - 1];
          out.flags = args[at];
          out.mode = args[at + 1];
          break;
        }
        case Call::kOpenHow:
          out.address = args[1];
          out.how = args[2];
          out.length = args[3];
          break;
        case Call::kMsync:
          out.fd = -1;
          out.address = args[0];
          out.length = args[1];
          out.flags = args[2];
          break;
        case Call::kSyncFileRange:
          if (data.arch == AUDIT_ARCH_ARM) {  // arm_sync_file_range: flags second, 64-bit pairs
            out.flags = args[1];
            out.offset = args[2] | args[3] << 32;
            out.length = args[4] | args[5] << 32;
          } else {
            out.offset = args[1];
            out.length = args[2];
            out.flags = args[3];
          }
          break;
        case Call::kWrite:
        case Call::kWritev:
          out.address = args[1];
          out.length = args[2];
          out.flags = rule.trap == Trap::kFlags ? args[5] : 0;
          break;
        case Call::kFsync:
        case Call::kSync:
        case Call::kSyncfs:
          break;
      }
    }
  }
  return out;
}

}  // namespace opjoule
