// MD5 (RFC 1321) in hexadecimal: spreads keys over folders so that `printf %s KEY | md5sum` finds a
// row's file. Not used for security.
//
// Thread safety: any thread.
#pragma once

#include <string_view>

namespace opjoule {

inline constexpr size_t kMd5Digits = 32;

// Writes 32 lower-case digits to `digits`.
void md5_hex(std::string_view message, char* digits);

}  // namespace opjoule
