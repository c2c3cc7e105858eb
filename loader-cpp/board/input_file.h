// Reads a small file that a user or another program wrote: a property file, a histogram.
//
// Thread safety: any thread.
#pragma once

#include <string>

#include "loader/status.h"

namespace opjoule {

// The whole of `path`, which `what` names in messages. kBadInput where it cannot be read or has
// more than `limit` bytes (a device that never ends, a file given by mistake): no more is read.
Status read_input(const std::string& what, const std::string& path, size_t limit,
                  std::string* text);

}  // namespace opjoule
