// Preloaded into `measure.py`: from a moment on the host's disk or clock misbehaves. For host/validation/fault_matrix.py.
// OPJOULE_FAULT = read-only | slow | clock; OPJOULE_FAULT_AFTER_S: seconds from its first file on; OPJOULE_FAULT_FOLDER: of the
// record; OPJOULE_FAULT_STEP_S: by how much the clock is set.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static double now_s(void) {
  struct timespec t;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
static double begun_s;
static int strikes(const char *fault) {
  const char *asked = getenv("OPJOULE_FAULT"), *after = getenv("OPJOULE_FAULT_AFTER_S");
  return begun_s && asked && after && strcmp(asked, fault) == 0 && now_s() - begun_s > atof(after);
}
static int inside(const char *path) {
  const char *folder = getenv("OPJOULE_FAULT_FOLDER");
  const int found = folder && path && strncmp(path, folder, strlen(folder)) == 0;
  if (found && !begun_s) begun_s = now_s();
  return found;
}
static int of_record(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return inside(path);
}
static int refused(int fd) {
  if (!of_record(fd)) return 0;
  if (strikes("slow")) usleep(200000);
  return strikes("read-only") && (errno = EROFS);
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
ssize_t write(int fd, const void *data, size_t size) { return refused(fd) ? -1 : REAL(write)(fd, data, size); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return refused(fd) ? -1 : REAL(pwrite64)(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return refused(fd) ? -1 : REAL(writev)(fd, parts, count); }
int fsync(int fd) { return refused(fd) ? -1 : REAL(fsync)(fd); }
int ftruncate64(int fd, off64_t size) { return refused(fd) ? -1 : REAL(ftruncate64)(fd, size); }
static int closed(const char *path) { return inside(path) && strikes("read-only") && (errno = EROFS); }
int rename(const char *from, const char *to) { return closed(to) ? -1 : REAL(rename)(from, to); }
int unlink(const char *path) { return closed(path) ? -1 : REAL(unlink)(path); }
int mkdir(const char *path, mode_t mode) { return closed(path) ? -1 : REAL(mkdir)(path, mode); }
#define OPEN(name)                                             \
  int name(const char *path, int flags, ...) {                 \
    va_list more;                                              \
    va_start(more, flags);                                     \
    const mode_t mode = va_arg(more, mode_t);                  \
    va_end(more);                                              \
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && closed(path)) return -1; \
    return REAL(name)(path, flags, mode);                      \
  }
OPEN(open)
OPEN(open64)
int clock_gettime(clockid_t clock, struct timespec *t) {
  const int status = (int)syscall(SYS_clock_gettime, clock, t);
  const char *step = getenv("OPJOULE_FAULT_STEP_S");
  if (status == 0 && clock == CLOCK_REALTIME && step && strikes("clock")) t->tv_sec += atol(step);
  return status;
}
int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  t->tv_sec = now.tv_sec;
  t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
