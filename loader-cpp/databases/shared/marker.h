// `opjoule.json`, the small file beside a database's data that says what wrote it:
//
//   {"schema": {"name": "opjoule-database", "version": 1}, "engine": "leveldb", "engine_version":
//   "1.23",
//    "record_layout": 3, "field_count": 10}
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

inline constexpr std::string_view kMarkerName = "opjoule.json";
inline constexpr int kRecordLayout = 3;  // the record format stated in loader/record.h

struct Marker {
  std::string engine;
  std::string engine_version;
  int64_t record_layout = kRecordLayout;
  int64_t field_count = 0;
};

// kNotFound where there is no such file; kCorrupt where it is not one of ours; kIo.
Status read_marker(const std::string& path, Marker* marker);
// Written under a temporary name, synced and renamed: never half there. kNoSpace, kIo.
Status write_marker(const std::string& path, const Marker& marker);
// kMismatch, in one line, where the database in `directory` is not what is asked for.
Status check_marker(const std::string& directory, const Marker& found, const Marker& asked);

}  // namespace opjoule
