#include "board/sync_carrier.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board/clock.h"
#include "board/gpio_chip.h"
#include "board/output_file.h"
#include "board/write_all.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

class VirtualCarrier : public SyncCarrier {
 public:
  VirtualCarrier(int fd, std::string path, std::optional<int> found)
      : fd_(fd), path_(std::move(path)), found_(found) {}
  ~VirtualCarrier() override { ::close(fd_); }

  [[nodiscard]] std::optional<int> found_level() const override { return found_; }

  Status set(int level, SyncEdge* edge) override {
    // Writing this line is the edge, so that its time is exact by definition.
    edge->board_ns = board_ns();
    edge->level = level;
    const std::string line = std::to_string(edge->board_ns) + " " + std::to_string(level) + "\n";
    if (!write_all(fd_, line)) return system_error("sync line " + path_ + ": cannot be written");
    return Status::ok();
  }

 private:
  int fd_;
  std::string path_;
  std::optional<int> found_;
};

// The level after the file's last line, 0 for an empty file; unknown for a FIFO.
std::optional<int> last_level(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) return 0;
  if (!S_ISREG(about.st_mode)) return std::nullopt;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char end[2] = {};
  const bool read = fd >= 0 && ::pread(fd, end, 2, about.st_size - 2) == 2;
  if (fd >= 0) ::close(fd);
  return read && end[0] == '1' ? 1 : 0;
}

}  // namespace

Status SyncCarrier::open(const std::string& text, std::unique_ptr<SyncCarrier>* out) {
  if (text.starts_with("virtual:")) {
    const std::string path = text.substr(8);
    const std::optional<int> found = last_level(path);
    int fd = -1;
    if (Status status = open_output("sync line", path, O_APPEND, &fd); !status.is_ok())
      return status;
    *out = std::make_unique<VirtualCarrier>(fd, path, found);
    return Status::ok();
  }
  if (!text.starts_with("gpio:") || text.size() == 5)
    return {StatusCode::kBadInput,
            "--sync " + text +
                ": expected gpio:NAME as in gpio:GPIO17, gpio:CHIP:LINE as in "
                "gpio:/dev/gpiochip0:17, gpio:sysfs:NUMBER, or virtual:PATH"};
  const std::string line_text = text.substr(5);
  if (line_text.starts_with("sysfs:"))
    return open_sysfs_gpio(GpioKernel{}, line_text.substr(6), out);
  GpioLine line;
  std::string interface;
  if (Status status = find_gpio_line(GpioKernel{}, line_text, &line); !status.is_ok())
    return status;
  return request_gpio_line(GpioKernel{}, line, GpioUse::kOutput, out, &interface);
}

}  // namespace opjoule
