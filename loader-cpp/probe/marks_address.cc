#include "probe/marks_address.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "loader/system_error.h"

namespace opjoule {

MarksAddress::~MarksAddress() {
  if (folder_ >= 0) ::close(folder_);
}

Status MarksAddress::set(const std::string& path) {
  address_.sun_family = AF_UNIX;
  std::string reached = path;
  if (path.size() >= sizeof address_.sun_path) {
    const size_t slash = path.find_last_of('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    folder_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return system_error("marks socket " + path + ": its folder cannot be opened");
    reached = "/proc/self/fd/" + std::to_string(folder_) + "/" + path.substr(slash + 1);
  }
  if (reached.size() >= sizeof address_.sun_path)
    return {StatusCode::kBadInput, "marks socket " + path + ": the name is too long"};
  std::memcpy(address_.sun_path, reached.c_str(), reached.size() + 1);
  return Status::ok();
}

}  // namespace opjoule
