// Where tests keep files that need no disk: its syncs would take most of their time.
#pragma once

#include <unistd.h>

#include <filesystem>

namespace opjoule {

/// Memory that is a file system, or the folder of temporary files where there is none.
inline std::filesystem::path in_memory() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

}  // namespace opjoule
