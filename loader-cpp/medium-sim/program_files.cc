#include "medium-sim/program_files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

#include "board/proc_file.h"

namespace opjoule {
namespace {

// The same numbers on every architecture since Linux 5.0.
constexpr long kPidfdOpen = 434;
constexpr long kPidfdGetfd = 438;
constexpr long kCachestat = 451;
constexpr unsigned kPidfdThread = O_EXCL;  // PIDFD_THREAD, Linux 6.9

std::string proc(pid_t tid, const std::string& rest) {
  return "/proc/" + std::to_string(tid) + "/" + rest;
}

int open_pidfd(pid_t tid) {
  const int fd = static_cast<int>(::syscall(kPidfdOpen, tid, kPidfdThread));
  if (fd >= 0 || errno != EINVAL) return fd;
  ProcFile status(proc(tid, "status").c_str());
  const auto leader = static_cast<pid_t>(number_after(status.read(), "\nTgid:"));
  return static_cast<int>(::syscall(kPidfdOpen, leader, 0));
}

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  bool shared = false;
  std::string path;
};

// A line of /proc/PID/maps, proc_pid_maps(5).
bool parse_mapping(const char* line, Mapping* out) {
  char permissions[8] = "";
  unsigned long long start = 0;
  unsigned long long end = 0;
  unsigned long long offset = 0;
  int path_at = 0;
  if (std::sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &start, &end, permissions, &offset,
                  &path_at) < 4)
    return false;
  *out = {start, end, offset, permissions[3] == 's', line + path_at};
  while (!out->path.empty() && out->path.back() == '\n') out->path.pop_back();
  return true;
}

std::string read_path(pid_t tid, uint64_t address) {
  std::string path;
  while (path.size() < PATH_MAX) {
    char part[256];
    // Not across a page that may not be there.
    const size_t size = std::min<size_t>(sizeof part, 4096 - address % 4096);
    const iovec here{part, size};
    const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), size};
    const ssize_t got = ::process_vm_readv(tid, &here, 1, &there, 1, 0);
    if (got <= 0) return {};
    const std::string_view text(part, static_cast<size_t>(got));
    const size_t end = text.find('\0');
    path.append(text.substr(0, end));
    if (end != std::string_view::npos) return path;
    address += static_cast<uint64_t>(got);
  }
  return {};
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor copy_descriptor(pid_t tid, int fd) {
  const Descriptor process(open_pidfd(tid));
  if (process.valid()) {
    Descriptor copy(static_cast<int>(::syscall(kPidfdGetfd, process.get(), fd, 0)));
    if (copy.valid() || errno == EBADF) return copy;
  }
  const std::string path = proc(tid, "fd/" + std::to_string(fd));
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return Descriptor();
  if (!S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode)) {
    errno = EPERM;  // opening a FIFO or a device would do something
    return Descriptor();
  }
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

MappedFile mapped_file(pid_t tid, uint64_t address, uint64_t length) {
  FILE* maps = std::fopen(proc(tid, "maps").c_str(), "re");
  if (maps == nullptr) return {};
  MappedFile out;
  std::vector<char> line(PATH_MAX + 256);
  Mapping mapping;
  while (std::fgets(line.data(), static_cast<int>(line.size()), maps) != nullptr) {
    if (!parse_mapping(line.data(), &mapping) || address >= mapping.end) continue;
    // No file, or several mappings in the range: the kernel may sort that out itself.
    if (address < mapping.start || address + length > mapping.end || !mapping.shared ||
        mapping.path.empty() || mapping.path[0] != '/')
      break;
    out.file = Descriptor(::open(mapping.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
    out.offset = mapping.offset + (address - mapping.start);
    break;
  }
  std::fclose(maps);
  return out;
}

bool read_how(pid_t tid, TrappedCall* call) {
  struct {
    uint64_t flags, mode, resolve;
  } how{};  // struct open_how, openat2(2)
  const iovec here{&how, sizeof how};
  const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(call->how)), sizeof how};
  if (call->length != sizeof how ||
      ::process_vm_readv(tid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(sizeof how))
    return false;
  call->flags = how.flags;
  call->mode = how.mode;
  return how.resolve == 0;
}

Descriptor open_for(pid_t tid, const TrappedCall& call) {
  std::string path = read_path(tid, call.address);
  if (path.empty()) {
    errno = EFAULT;
    return Descriptor();
  }
  if (path[0] == '/') {
    path = proc(tid, "root") + path;
  } else if (call.fd == AT_FDCWD) {
    path = proc(tid, "cwd/") + path;
  } else {
    path = proc(tid, "fd/" + std::to_string(call.fd) + "/") + path;
  }
  int flags = static_cast<int>(call.flags) & ~(O_SYNC | O_DSYNC);
  if ((flags & O_ACCMODE) == O_WRONLY) flags &= ~O_DIRECT;
  ProcFile status(proc(tid, "status").c_str());
  const std::string_view text = status.read();
  const size_t at = text.find("\nUmask:");
  unsigned mask = 022;
  if (at != std::string_view::npos) std::sscanf(text.data() + at, "\nUmask: %o", &mask);
  // Only this thread opens files that may be made; the mask is the process's, all the same.
  const mode_t own = ::umask(static_cast<mode_t>(mask));
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, call.mode));
  const int error_number = errno;
  ::umask(own);
  errno = error_number;
  return file;
}

bool descriptor_is_free(pid_t tid, int number) {
  struct stat about{};
  return ::lstat(proc(tid, "fd/" + std::to_string(number)).c_str(), &about) != 0;
}

uint64_t dirty_bytes_of(int fd, uint64_t offset, uint64_t length, uint64_t otherwise) {
  struct {
    uint64_t offset, length;
  } range{offset, length};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } pages{};
  if (::syscall(kCachestat, fd, &range, &pages, 0) != 0) return otherwise;
  static const auto kPageBytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (pages.dirty + pages.writeback) * kPageBytes;
}

uint64_t vectors_bytes(pid_t tid, uint64_t address, uint64_t count) {
  std::vector<iovec> vectors(std::min<uint64_t>(count, IOV_MAX));
  const iovec here{vectors.data(), vectors.size() * sizeof(iovec)};
  const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), here.iov_len};
  if (::process_vm_readv(tid, &here, 1, &there, 1, 0) != static_cast<ssize_t>(here.iov_len))
    return 0;
  uint64_t bytes = 0;
  for (const iovec& vector : vectors) bytes += vector.iov_len;
  return bytes;
}

}  // namespace opjoule
