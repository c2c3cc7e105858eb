// Writes back what the kernel still holds of a file system, within a time limit.
//
// Thread safety: any thread.
#pragma once

#include <string>

#include "loader/status.h"

namespace opjoule {

// syncfs() of the file system `path` is on; *settled is false if `limit_s` passed first; the kernel
// then goes on by itself. kIo where writing back failed.
Status write_back(const std::string& path, double limit_s, bool* settled);

}  // namespace opjoule
