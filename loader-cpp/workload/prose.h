// Text for compressible values: English-like prose from a seed, or a file of the user's.
//
// Thread safety: made once, shared for reading.
#pragma once

#include <cstdint>
#include <string>

#include "loader/status.h"

namespace opjoule {

// English-like prose of `size` bytes: common words, drawn by the Zipf-Mandelbrot law, in sentences
// and paragraphs. The same seed gives the same text.
// What it is like, and how compressors see it: docs/reference/loader.md.
std::string make_prose(uint64_t seed, size_t size);

// The text of `valuetext`: "generated", or the contents of a file of 1 B to 64 MiB. kBadInput names
// the file.
Status read_value_text(const std::string& name, uint64_t seed, std::string* out);

}  // namespace opjoule
