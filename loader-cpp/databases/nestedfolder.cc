// The file system as a database, rows spread over folders (study S2's nested folder):
// DIR/records/AB/CD/ABCD...
//
// The file's name has 32 hexadecimal characters; the first four name the two levels of folders
// above it: 65,536 folders at most. A key of that form (in lower case) is used as it is, of any
// other its MD5: printf %s KEY | md5sum.
#include "databases/nestedfolder_md5.h"
#include "databases/shared/options.h"
#include "databases/shared/row_folder.h"

namespace opjoule {

const Engine& nestedfolder_engine();

namespace {

constexpr size_t kLevels = 2;

bool is_hex_key(std::string_view key) {
  return key.size() == kMd5Digits &&
         key.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status append_path(std::string_view key, std::string& path) {
  char hashed[kMd5Digits];
  if (!is_hex_key(key)) {
    md5_hex(key, hashed);
    key = {hashed, kMd5Digits};
  }
  for (size_t level = 0; level < kLevels; ++level) {
    path.append(key.substr(2 * level, 2));
    path.push_back('/');
  }
  path.append(key);
  return Status::ok();
}

std::unique_ptr<Database> open_nestedfolder(const OpenRequest& request, Status& status) {
  static const FolderLayout layout{
      "nestedfolder", &append_path,
      "2 levels of 2 hex characters, then the 32-hex key: the key itself or its MD5"};
  return open_row_folder(layout, nestedfolder_engine().version, request, status);
}

}  // namespace

const Engine& nestedfolder_engine() {
  static const Engine engine{"nestedfolder", "2", folder_rules("nestedfolder"), open_nestedfolder};
  return engine;
}

}  // namespace opjoule
