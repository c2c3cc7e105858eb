#include "board/input_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "loader/system_error.h"

namespace opjoule {

Status read_input(const std::string& what, const std::string& path, size_t limit,
                  std::string* text) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(what + path + ": cannot be opened");
  Status status;
  text->clear();
  char part[4096];
  while (status.is_ok()) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = system_error(what + path + ": cannot be read");
    if (got <= 0) break;
    text->append(part, static_cast<size_t>(got));
    if (text->size() > limit)
      status = {StatusCode::kBadInput, what + path + ": has more than " +
                                           std::to_string(limit >> 20) +
                                           " MiB; is it the file that was meant?"};
  }
  ::close(fd);
  return status;
}

}  // namespace opjoule
