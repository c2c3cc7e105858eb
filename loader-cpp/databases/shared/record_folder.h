// A database of one file a record, in folders below DIR/records: what the flat and the nested
// folder share.
//
// Each file holds a record as loader/record.h lays it out, and nothing else. Habits: an insert
// makes the file where it belongs and is kExists where it is there; an update, of one field or all,
// writes a new file in DIR/writing and renames it over the old one, so that neither a reader nor a
// full disk meets half a record; a folder has no key order, so a scan is kUnsupported.
// durability=sync: the file is synced before its insert or update ends, and so is each folder that
// changed. Any number of sessions. Thread safety: as loader/database.h says.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loader/database.h"

namespace opjoule {

// How keys become files.
struct FolderLayout {
  std::string_view engine;
  // Appends the file's path below DIR/records to `path`; kBadInput for a key that cannot be a file.
  Status (*append_path)(std::string_view key, std::string& path);
  std::string_view naming;  // for the settings
};

std::unique_ptr<Database> open_record_folder(const FolderLayout& layout, std::string_view version,
                                             const OpenRequest& request, Status& status);

}  // namespace opjoule
