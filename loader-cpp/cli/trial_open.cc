#include "cli/trial_open.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>

#include "board/exit_code.h"
#include "board/output.h"
#include "cli/properties_check.h"
#include "cli/summary.h"

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

int try_engine(const Engine& engine, const Properties& properties,
               const WorkloadSettings& settings) {
  if (engine.is_server) return kExitOk;
  const TemporaryFolder folder;
  if (folder.path().empty())
    return report_failure(
        {StatusCode::kIo, "no temporary folder to check the engine's settings in: set TMPDIR"});
  OpenRequest request;
  request.path = folder.path() + "/db";
  request.create = true;
  request.field_count = settings.field_count;
  request.threads = static_cast<int>(settings.threads);
  request.properties = &properties;
  Status status;
  const std::unique_ptr<Database> database = engine.open(request, status);
  if (database != nullptr) status = database->close();
  return status.is_ok() ? kExitOk : report_failure(status);
}

}  // namespace

int check_engine(const Engine& engine, const Properties& properties,
                 const WorkloadSettings& settings, bool has_trace) {
  const int code = try_engine(engine, properties, settings);
  if (code == kExitOk) print_line(ignored_json(ignored_keys(properties, engine, has_trace)));
  return code;
}

}  // namespace opjoule
