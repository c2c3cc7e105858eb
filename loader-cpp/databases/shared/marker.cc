#include "databases/shared/marker.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "databases/shared/errno_status.h"

namespace opjoule {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "opjoule-database";

Json to_json(const Marker& marker) {
  return {{"schema", {{"name", kSchema}, {"version", 1}}},
          {"engine", marker.engine},
          {"engine_version", marker.engine_version},
          {"record_layout", marker.row_layout},
          {"field_count", marker.field_count}};
}

Marker from_json(const Json& json) {
  if (json.at("schema").at("name") != kSchema) throw std::invalid_argument("another schema");
  return {json.at("engine"), json.at("engine_version"), json.at("record_layout"),
          json.at("field_count")};
}

}  // namespace

Status read_marker(const std::string& path, Marker* marker) {
  if (access(path.c_str(), F_OK) != 0) return Status::not_found();
  std::ifstream in(path);
  if (!in) return errno_status("read", path);
  try {
    *marker = from_json(Json::parse(in));
  } catch (const std::exception&) {  // not JSON, or not what to_json() wrote
    return {StatusCode::kCorrupt, path + " does not describe a database of this loader"};
  }
  return Status::ok();
}

Status write_marker(const std::string& path, const Marker& marker) {
  const std::string temporary = path + ".tmp";
  const std::string json = to_json(marker).dump(1) + "\n";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return errno_status("write", temporary);
  const bool written =
      ::write(fd, json.data(), json.size()) == static_cast<ssize_t>(json.size()) && fsync(fd) == 0;
  const Status status = written ? Status::ok() : errno_status("write", temporary);
  ::close(fd);
  if (!status.is_ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) return errno_status("rename", temporary);
  return Status::ok();
}

Status check_marker(const std::string& directory, const Marker& found, const Marker& asked) {
  auto mismatch = [&](const std::string& what) {
    return Status(StatusCode::kMismatch, "the database in " + directory + " " + what +
                                             "; load it anew or choose another path");
  };
  if (found.engine != asked.engine)
    return mismatch("was written by " + found.engine + ", not by " + asked.engine);
  if (found.row_layout != asked.row_layout)
    return mismatch("has record layout " + std::to_string(found.row_layout) + ", not " +
                    std::to_string(asked.row_layout));
  if (found.field_count != asked.field_count)
    return mismatch("was loaded with fieldcount=" + std::to_string(found.field_count) +
                    ", not fieldcount=" + std::to_string(asked.field_count));
  return Status::ok();
}

}  // namespace opjoule
