#include "cli/trial_open.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "databases/shared/directory.h"

namespace opjoule {
namespace {

// A folder that goes with its contents at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code ignored;
    std::string name = std::filesystem::temp_directory_path(ignored) / "opjoule-check-XXXXXX";
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

Status trial_open(const Engine& engine, const Properties& properties, uint16_t field_count,
                  int threads) {
  if (owned_files(engine.name).empty()) return Status::ok();
  const TemporaryFolder folder;
  if (folder.path().empty())
    return {StatusCode::kIo, "no temporary folder to check the settings in: set TMPDIR to one"};
  OpenRequest request;
  request.path = folder.path() + "/db";
  request.create = true;
  request.field_count = field_count;
  request.threads = threads;
  request.properties = &properties;
  Status status;
  const std::unique_ptr<Database> database = engine.open(request, status);
  return database == nullptr ? status : database->close();
}

}  // namespace opjoule
