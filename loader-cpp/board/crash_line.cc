#include "board/crash_line.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <new>

namespace opjoule {
namespace {

constexpr int kEngineFailed = 3;  // board/exit_code.h
constexpr int kCorrupt = 4;
constexpr size_t kLineBytes = 4352;  // a path and the rest of a line of /proc/self/maps

// Everything below runs in a signal handler: no allocation, no locks, system calls alone.

void say(const char* text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

uint64_t take_hex(const char** at) {
  uint64_t value = 0;
  for (;; ++*at) {
    const char c = **at;
    if (c >= '0' && c <= '9')
      value = value * 16 + static_cast<uint64_t>(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + static_cast<uint64_t>(c - 'a' + 10);
    else
      return value;
  }
}

// Reads a line, without its end, into `line`; false at the end of the file.
bool read_line(int fd, char* line) {
  size_t length = 0;
  for (char c = 0; ::read(fd, &c, 1) == 1;) {
    if (c == '\n') {
      line[length] = '\0';
      return true;
    }
    if (length + 1 < kLineBytes) line[length++] = c;
  }
  return false;
}

// The file mapped at `address`, and the place in it: "start-end perms offset device inode path".
// Empty where there is none.
const char* mapped_file(uint64_t address, char* line, uint64_t* offset) {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  const char* path = "";
  while (fd >= 0 && read_line(fd, line)) {
    const char* at = line;
    const uint64_t start = take_hex(&at);
    if (*at++ != '-') continue;
    const uint64_t end = take_hex(&at);
    if (address < start || address >= end) continue;
    if (std::strlen(at) > 6) at += 6;  // " rw-s "
    *offset = take_hex(&at) + (address - start);
    if (const char* slash = std::strchr(at, '/'); slash != nullptr) path = slash;
    break;
  }
  if (fd >= 0) ::close(fd);
  return path;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void on_crash(int number) {
  say("loader: the engine's code ended the process (");
  say(number == SIGABRT ? "SIGABRT" : number == SIGFPE ? "SIGFPE" : "SIGSEGV");
  say("): the database is damaged, or this is a fault of the program; load the database anew\n");
  ::_exit(kEngineFailed);
}
#endif

void on_bus_error(int, siginfo_t* info, void*) {
  static char line[kLineBytes];
  uint64_t offset = 0;
  const char* path = mapped_file(reinterpret_cast<uintptr_t>(info->si_addr), line, &offset);
  struct stat found{};
  const bool is_cut = ::stat(path, &found) == 0 && offset >= static_cast<uint64_t>(found.st_size);
  say("loader: ");
  say(*path == '\0' ? "a mapped file" : path);
  say(is_cut ? ": ends before data that it is to hold (cut off, or its copy is incomplete); load "
               "the database anew\n"
             : ": could not be read through its memory map: the storage device failed (SIGBUS)\n");
  ::_exit(is_cut ? kCorrupt : kEngineFailed);
}

[[noreturn]] void on_out_of_memory() {
  say("loader: out of memory: the system gives no more; use fewer threads, smaller records or "
      "smaller engine caches\n");
  ::_exit(kEngineFailed);
}

}  // namespace

void report_crashes() {
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they have reports of their own
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE}) signal(number, on_crash);
#endif
  std::set_new_handler(on_out_of_memory);
}

}  // namespace opjoule
