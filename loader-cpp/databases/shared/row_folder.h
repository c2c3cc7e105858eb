// A database with one file for each row, in folders below DIR/records: what the flat and the nested
// folder share.
//
// Each file holds a row as loader/row.h lays it out, and nothing else. Habits: an insert makes the
// file in its place, and is kExists if it is there already; an update, of one field or all, writes
// a new file in DIR/writing and renames it over the old one, so that no reader ever sees half a
// row, nor does a full disk leave one; with ENGINE.updates=in-place it cuts the old file and writes
// into it, as plain programs do. A folder has no key order, so a scan is kUnsupported.
// durability=sync: the file is synced before its insert or update ends, and so is each folder that
// changed. Any number of clients. Thread safety: as loader/database.h says.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader/database.h"

namespace opjoule {

// How keys become files.
struct FolderLayout {
  std::string_view engine;
  // Appends the file's path below DIR/records to `path`; kBadInput for a key that cannot be a file.
  Status (*append_path)(std::string_view key, std::string& path);
  std::string_view naming;  // for the settings
};

// The properties of such an engine.
std::vector<PropertyRule> folder_rules(const std::string& engine);

std::unique_ptr<Database> open_row_folder(const FolderLayout& layout, std::string_view version,
                                          const OpenRequest& request, Status& status);

}  // namespace opjoule
