// Preloaded into `measure.py record`: keeps every change below one folder in a log, in order. For host/validation/power_loss.py.
// OPJOULE_WRITE_LOG: the log; OPJOULE_WRITE_FOLDER: the folder. An entry: "OP PATH\tPATH2\tOFFSET\tBYTES\n" and the bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inside(const char *path) {
  const char *folder = getenv("OPJOULE_WRITE_FOLDER");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}
static const char *path_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, 4095);
  path[length < 0 ? 0 : length] = 0;
  return inside(path) ? path : NULL;
}
static void note(const char *what, const char *path, const char *path2, long long at, const void *data, size_t size) {
  static int log_fd = -1;
  char head[9000];
  if (log_fd < 0) log_fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("OPJOULE_WRITE_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int length = snprintf(head, sizeof head, "%s %s\t%s\t%lld\t%zu\n", what, path, path2, at, data ? size : 0);
  syscall(SYS_write, log_fd, head, length);
  if (data && size) syscall(SYS_write, log_fd, data, size);
}
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define LOCKED(call)            \
  pthread_mutex_lock(&lock);    \
  const __typeof__(call) status = (call);

ssize_t write(int fd, const void *data, size_t size) {
  char place[4096];
  const char *path = path_of(fd, place);
  if (!path) return REAL(write)(fd, data, size);
  LOCKED(REAL(write)(fd, data, size))
  if (status > 0) note("write", path, "", lseek(fd, 0, SEEK_CUR) - status, data, status);
  pthread_mutex_unlock(&lock);
  return status;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  char place[4096];
  const char *path = path_of(fd, place);
  if (!path) return REAL(pwrite64)(fd, data, size, at);
  LOCKED(REAL(pwrite64)(fd, data, size, at))
  if (status > 0) note("write", path, "", at, data, status);
  pthread_mutex_unlock(&lock);
  return status;
}
static int sized(int fd, long long size, int status) {
  char place[4096];
  const char *path = path_of(fd, place);
  if (path && status == 0) note("size", path, "", size, NULL, 0);
  return status;
}
int ftruncate64(int fd, off64_t size) { return sized(fd, size, REAL(ftruncate64)(fd, size)); }
int posix_fallocate64(int fd, off64_t at, off64_t size) { return sized(fd, at + size, REAL(posix_fallocate64)(fd, at, size)); }
int fsync(int fd) {
  char place[4096];
  const char *path = path_of(fd, place);
  LOCKED(REAL(fsync)(fd))
  if (path && status == 0) note("sync", path, "", 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return status;
}
int rename(const char *from, const char *to) {
  LOCKED(REAL(rename)(from, to))
  if (inside(to) && status == 0) note("rename", from, to, 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return status;
}
int unlink(const char *path) {
  LOCKED(REAL(unlink)(path))
  if (inside(path) && status == 0) note("unlink", path, "", 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return status;
}
int mkdir(const char *path, mode_t mode) {
  LOCKED(REAL(mkdir)(path, mode))
  if (inside(path) && status == 0) note("mkdir", path, "", 0, NULL, 0);
  pthread_mutex_unlock(&lock);
  return status;
}
#define OPEN(name)                                                                     \
  int name(const char *path, int flags, ...) {                                         \
    va_list more;                                                                      \
    va_start(more, flags);                                                             \
    const mode_t mode = va_arg(more, mode_t);                                          \
    va_end(more);                                                                      \
    if (!inside(path) || !(flags & (O_CREAT | O_TRUNC))) return REAL(name)(path, flags, mode); \
    LOCKED(REAL(name)(path, flags, mode))                                              \
    if (status >= 0) note(flags & O_TRUNC ? "empty" : "make", path, "", 0, NULL, 0);   \
    pthread_mutex_unlock(&lock);                                                       \
    return status;                                                                     \
  }
OPEN(open)
OPEN(open64)
