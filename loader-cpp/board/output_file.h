// Opens what the loader writes: a file, or a FIFO that another program reads.
//
// Thread safety: any thread.
#pragma once

#include <cerrno>
#include <string>

#include "loader/status.h"

namespace opjoule {

inline constexpr double kReaderLimitS = 10;

// Opens `path` for writing, made where it is missing; `flags` are O_TRUNC or O_APPEND, `what` names
// it in messages. A FIFO is waited for until somebody has opened it for reading, for reader_limit_s
// at most: there may be none any more. kIo if none came, kInterrupted after SIGINT or SIGTERM.
Status open_output(const std::string& what, const std::string& path, int flags, int* fd,
                   double reader_limit_s = kReaderLimitS);

// Why `path` could not be written and, on a full disk, what to do.
Status output_error(const std::string& what, const std::string& path, int error_number = errno);

}  // namespace opjoule
