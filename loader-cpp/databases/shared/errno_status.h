// The Status of a failed system call.
//
// Thread safety: any thread.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

// kNoSpace for a full file system or quota, kIo otherwise: "cannot WHAT PATH: the system's own
// words".
Status errno_status(std::string_view what, std::string_view path, int error_number = errno);

// kNoSpace where an engine's text ends in the system's words for a full file system, kIo otherwise.
Status io_status(std::string_view engine, std::string_view engine_words);

}  // namespace opjoule
