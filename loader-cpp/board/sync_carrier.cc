#include <fcntl.h>
#include <linux/gpio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "board/clock.h"
#include "board/output_file.h"
#include "board/sync_line.h"
#include "board/system_error.h"
#include "board/write_all.h"

namespace opjoule {
namespace {

// Source: Linux user-space API, linux/gpio.h, version 2 (since Linux 5.10).
class GpioCarrier : public SyncCarrier {
 public:
  explicit GpioCarrier(int line_fd) : line_fd_(line_fd) {}
  ~GpioCarrier() override { ::close(line_fd_); }

  Status set(int level, SyncEdge* edge) override {
    gpio_v2_line_values values{};
    values.mask = 1;
    values.bits = static_cast<__u64>(level);
    const int64_t before_ns = board_ns();
    const int result = ::ioctl(line_fd_, GPIO_V2_LINE_SET_VALUES_IOCTL, &values);
    const int64_t after_ns = board_ns();
    if (result < 0) return system_error("sync line: cannot be set");
    // The pin changed somewhere in between: a rectangular distribution.
    edge->board_ns = before_ns + (after_ns - before_ns) / 2;
    edge->u_ns = static_cast<double>(after_ns - before_ns) / std::sqrt(12.0);
    edge->level = level;
    return Status::ok();
  }

 private:
  int line_fd_;
};

class VirtualCarrier : public SyncCarrier {
 public:
  VirtualCarrier(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~VirtualCarrier() override { ::close(fd_); }

  Status set(int level, SyncEdge* edge) override {
    // The line below is the edge: its time is exact by definition.
    edge->board_ns = board_ns();
    edge->level = level;
    const std::string line = std::to_string(edge->board_ns) + " " + std::to_string(level) + "\n";
    if (!write_all(fd_, line)) return system_error("sync line " + path_ + ": cannot be written");
    return Status::ok();
  }

 private:
  int fd_;
  std::string path_;
};

Status open_gpio(const std::string& chip, unsigned offset, std::unique_ptr<SyncCarrier>* out) {
  const std::string name = "sync line gpio:" + chip + ":" + std::to_string(offset);
  const int chip_fd = ::open(chip.c_str(), O_RDWR | O_CLOEXEC);
  if (chip_fd < 0) return system_error(name + ": cannot be opened");
  gpio_v2_line_request request{};
  request.offsets[0] = offset;
  request.num_lines = 1;
  std::strncpy(request.consumer, "opjoule-sync", sizeof request.consumer - 1);
  request.config.flags = GPIO_V2_LINE_FLAG_OUTPUT;
  const int result = ::ioctl(chip_fd, GPIO_V2_GET_LINE_IOCTL, &request);
  const int error_number = errno;
  ::close(chip_fd);
  if (result < 0 && error_number == EBUSY)
    return {StatusCode::kBadInput, name + ": another program uses this pin"};
  if (result < 0) return system_error(name + ": not to be had as an output", error_number);
  *out = std::make_unique<GpioCarrier>(request.fd);
  return Status::ok();
}

}  // namespace

Status SyncCarrier::open(const std::string& text, std::unique_ptr<SyncCarrier>* out) {
  if (text.starts_with("virtual:")) {
    const std::string path = text.substr(8);
    int fd = -1;
    if (Status status = open_output("sync line", path, O_APPEND, &fd); !status.is_ok())
      return status;
    *out = std::make_unique<VirtualCarrier>(fd, path);
    return Status::ok();
  }
  const size_t colon = text.rfind(':');
  unsigned offset = 0;
  if (text.starts_with("gpio:") && colon > 5) {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, offset);
    if (parsed.ec == std::errc() && parsed.ptr == end)
      return open_gpio(text.substr(5, colon - 5), offset, out);
  }
  return {
      StatusCode::kBadInput,
      "--sync " + text + ": expected gpio:CHIP:LINE as in gpio:/dev/gpiochip0:17, or virtual:PATH"};
}

}  // namespace opjoule
