// The file system as a database, all rows in one folder (study S2's flat folder):
// DIR/records/KEY.
//
// The file's name is the key; a leading dot, and every byte other than A-Z a-z 0-9 _ - . is written
// as %XX, in capitals.
#include "databases/shared/options.h"
#include "databases/shared/row_folder.h"

namespace opjoule {

const Engine& flatfolder_engine();

namespace {

constexpr size_t kLongestName = 255;  // Linux's NAME_MAX

bool stands_as_it_is(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || (c == '.' && !first);
}

Status append_name(std::string_view key, std::string& path) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  const size_t before = path.size();
  for (size_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (stands_as_it_is(key[i], i == 0))
      path.push_back(key[i]);
    else
      path.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
  }
  const size_t length = path.size() - before;
  if (length >= 1 && length <= kLongestName) return Status::ok();
  return {StatusCode::kBadInput,
          "flatfolder: a file's name has 1 to 255 bytes, this key makes " + std::to_string(length)};
}

std::unique_ptr<Database> open_flatfolder(const OpenRequest& request, Status& status) {
  static const FolderLayout layout{"flatfolder", &append_name, "the key, percent-encoded"};
  return open_row_folder(layout, flatfolder_engine().version, request, status);
}

}  // namespace

const Engine& flatfolder_engine() {
  static const Engine engine{"flatfolder", "1", folder_rules("flatfolder"), open_flatfolder};
  return engine;
}

}  // namespace opjoule
