// `opjoule.json`, the small file beside a database's data that says what wrote it:
//
//   {"schema": {"name": "opjoule-database", "version": 1}, "engine": "leveldb",
//    "engine_version": "1.23", "record_layout": 3, "field_count": 10}
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

inline constexpr std::string_view kMarkerName = "opjoule.json";
inline constexpr int kRowLayout = 3;  // the row format stated in loader/row.h

struct Marker {
  std::string engine;
  std::string engine_version;
  int64_t row_layout = kRowLayout;
  int64_t field_count = 0;
};

// kNotFound where there is no such file; kCorrupt where the loader did not write it; kIo.
Status read_marker(const std::string& path, Marker* marker);
// Writes it under a temporary name, syncs and renames it, so that it is never there in part.
// kNoSpace, kIo.
Status write_marker(const std::string& path, const Marker& marker);
// kMismatch, in one line, where the database in `directory` is not what is asked for.
Status check_marker(const std::string& directory, const Marker& found, const Marker& asked);

}  // namespace opjoule
