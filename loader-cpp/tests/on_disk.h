// Where tests keep files whose bytes are to reach a medium.
#pragma once

#include <filesystem>

namespace opjoule {

/// A folder of temporary files that outlives a restart, so it is on a disk. Debian 13 has /tmp in
/// memory.
inline std::filesystem::path on_disk() { return "/var/tmp"; }

}  // namespace opjoule
