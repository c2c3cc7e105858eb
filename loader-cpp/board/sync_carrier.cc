#include "board/sync_carrier.h"

#include <fcntl.h>
#include <unistd.h>

#include "board/clock.h"
#include "board/gpio_chip.h"
#include "board/output_file.h"
#include "board/system_error.h"
#include "board/write_all.h"

namespace opjoule {
namespace {

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
