// A failed system call as a Status.
//
// Thread safety: any thread.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "loader/status.h"

namespace opjoule {

// "what: the system's own words". kNoSpace for a full file system, kBadInput for a path that is
// wrong, kIo otherwise.
inline Status system_error(const std::string& what, int error_number = errno) {
  StatusCode code = StatusCode::kIo;
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      code = StatusCode::kNoSpace;
      break;
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
      code = StatusCode::kBadInput;
      break;
    default:
      break;
  }
  return {code, what + ": " + std::generic_category().message(error_number)};
}

}  // namespace opjoule
