// On 32-bit boards Debian's LevelDB and RocksDB call readdir() with 32-bit offsets, which fails
// (EOVERFLOW) where a file system gives longer ones: LevelDB then overlooks its own log. The linker
// replaces their calls by this (cmake/board.cmake, --wrap).
#if __SIZEOF_POINTER__ == 4
#define _LARGEFILE64_SOURCE
#undef _FILE_OFFSET_BITS
#include <dirent.h>

#include <cstddef>
#include <cstring>

static_assert(offsetof(struct dirent, d_name) == 11,
              "the engines' entries have numbers and offsets of 32 bits: compile this file alone");

extern "C" struct dirent* __wrap_readdir(DIR* directory) {
  thread_local struct dirent narrow;
  const struct dirent64* entry = readdir64(directory);
  if (entry == nullptr) return nullptr;
  narrow.d_ino = static_cast<ino_t>(entry->d_ino);  // neither engine looks at number or offset
  narrow.d_off = 0;
  narrow.d_reclen = sizeof narrow;
  narrow.d_type = entry->d_type;
  std::strncpy(narrow.d_name, entry->d_name, sizeof narrow.d_name - 1);
  return &narrow;
}
#endif
