#include "databases/shared/marker.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>

#include "databases/shared/errno_status.h"

namespace opjoule {
namespace {

// The text after `"key": `, or an empty view.
std::string_view value_after(std::string_view json, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\": ";
  const size_t at = json.find(quoted);
  return at == std::string_view::npos ? std::string_view() : json.substr(at + quoted.size());
}

bool read_text(std::string_view json, std::string_view key, std::string* out) {
  const std::string_view value = value_after(json, key);
  const size_t end = value.find('"', 1);
  if (value.empty() || value[0] != '"' || end == std::string_view::npos) return false;
  *out = value.substr(1, end - 1);
  return true;
}

bool read_integer(std::string_view json, std::string_view key, int64_t* out) {
  const std::string_view value = value_after(json, key);
  return !value.empty() &&
         std::from_chars(value.data(), value.data() + value.size(), *out).ec == std::errc();
}

std::string to_json(const Marker& marker) {
  return "{\"schema\": {\"name\": \"opjoule-database\", \"version\": 1}, \"engine\": \"" +
         marker.engine + "\", \"engine_version\": \"" + marker.engine_version +
         "\", \"record_layout\": " + std::to_string(marker.record_layout) +
         ", \"field_count\": " + std::to_string(marker.field_count) + "}\n";
}

}  // namespace

Status read_marker(const std::string& path, Marker* marker) {
  if (access(path.c_str(), F_OK) != 0) return Status::not_found();
  std::ifstream in(path);
  if (!in) return errno_status("read", path);
  const std::string json((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (json.find("\"opjoule-database\"") == std::string::npos ||
      !read_text(json, "engine", &marker->engine) ||
      !read_text(json, "engine_version", &marker->engine_version) ||
      !read_integer(json, "record_layout", &marker->record_layout) ||
      !read_integer(json, "field_count", &marker->field_count))
    return {StatusCode::kCorrupt, path + " does not describe a database of this loader"};
  return Status::ok();
}

Status write_marker(const std::string& path, const Marker& marker) {
  const std::string temporary = path + ".tmp";
  const std::string json = to_json(marker);
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
  if (found.record_layout != asked.record_layout)
    return mismatch("has record layout " + std::to_string(found.record_layout) + ", not " +
                    std::to_string(asked.record_layout));
  if (found.field_count != asked.field_count)
    return mismatch("was loaded with fieldcount=" + std::to_string(found.field_count) +
                    ", not fieldcount=" + std::to_string(asked.field_count));
  return Status::ok();
}

}  // namespace opjoule
