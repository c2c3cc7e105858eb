// The directory in which an engine keeps its files: who wrote it, what may be replaced, how much it
// takes.
//
// A small file `opjoule.json` beside the data says which engine wrote it, with which row layout
// and field count. Nothing is ever deleted in a directory that has no such file, or that holds a
// file the named engine does not write. Thread safety: bytes() from any thread; the rest from the
// main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "databases/shared/marker.h"
#include "loader/database.h"
#include "loader/status.h"

namespace opjoule {

class DatabaseDirectory {
 public:
  DatabaseDirectory() = default;
  DatabaseDirectory(const DatabaseDirectory&) = delete;
  DatabaseDirectory& operator=(const DatabaseDirectory&) = delete;
  ~DatabaseDirectory();

  // Makes request.path ready for `engine`: created or emptied (create), or checked against its
  // marker (else, or resume). The directory is locked against other loaders until this object ends.
  // kBadInput: nothing there to open, foreign files in the way; kMismatch: written by another
  // engine, with another row layout or field count; kCorrupt: without its main file; kBusy:
  // another loader has it open; kNoSpace, kIo.
  Status open(const OpenRequest& request, std::string_view engine, std::string_view version);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string file(std::string_view name) const;
  // True where the database has to be made.
  [[nodiscard]] bool is_new() const { return is_new_; }
  // Bytes allocated on the medium by all files below, without the marker. A file that vanishes
  // meanwhile does not count.
  [[nodiscard]] uint64_t bytes() const;

 private:
  Status lock();
  [[nodiscard]] Status check_main_file(std::string_view engine) const;
  Status make_new(const Marker& asked, const std::string& old_engine);

  std::string path_;
  int lock_fd_ = -1;
  bool is_new_ = false;
};

// The names `engine` writes into its directory, as patterns of fnmatch(3); empty for an engine that
// is not known.
const std::vector<std::string>& owned_files(std::string_view engine);

}  // namespace opjoule
