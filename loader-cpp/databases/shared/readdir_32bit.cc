// On 32-bit boards Debian 12's LevelDB and RocksDB call readdir() with 32-bit offsets, which fails
// (EOVERFLOW) where a file system gives longer ones: LevelDB then overlooks its own log. The linker
// replaces their calls by this (cmake/board.cmake, --wrap).
#if __SIZEOF_POINTER__ == 4
#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace opjoule {
namespace {

// A directory entry as those engines were compiled to read it: glibc's `struct dirent` with numbers
// and offsets of 32 bits. The compiler's own has 64, always so on Debian 13.
struct Entry32 {
  uint32_t number;
  int32_t offset;
  uint16_t length;
  uint8_t type;
  char name[256];
};
static_assert(offsetof(Entry32, name) == 11);

}  // namespace
}  // namespace opjoule

extern "C" void* __wrap_readdir(DIR* directory) {
  thread_local opjoule::Entry32 narrow;
  const struct dirent64* entry = readdir64(directory);
  if (entry == nullptr) return nullptr;
  narrow.number = static_cast<uint32_t>(entry->d_ino);  // neither engine looks at number or offset
  narrow.offset = 0;
  narrow.length = sizeof narrow;
  narrow.type = entry->d_type;
  std::strncpy(narrow.name, entry->d_name, sizeof narrow.name - 1);
  return &narrow;
}
#endif
