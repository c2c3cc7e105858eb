#include <fcntl.h>
#include <linux/gpio.h>

#include <cstring>

#include "board/gpio_kernel.h"
#include "board/timed_edge.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr const char* kConsumer = "opjoule-sync";

// How a kernel answers a request that it does not know: EINVAL before 5.11 or so, ENOTTY since, and
// ENOSYS or EPERM from a system-call filter.
bool is_unknown_request(int error_number) {
  return error_number == EINVAL || error_number == ENOTTY || error_number == ENOSYS ||
         error_number == EPERM;
}

Status not_to_be_had(const GpioLine& line, int error_number) {
  const std::string what = "sync line gpio:" + place(line);
  if (error_number == EBUSY)
    return {StatusCode::kBadInput, what + ": " +
                                       (line.consumer.empty() ? "another program" : line.consumer) +
                                       " uses this pin"};
  return system_error(what + ": not to be had as an output", error_number);
}

bool write_file(const std::string& path, const std::string& value) {
  const GpioFile file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.fd() >= 0 &&
         ::write(file.fd(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::string read_file(const std::string& path) {
  const GpioFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[16];
  const ssize_t got = file.fd() < 0 ? -1 : ::read(file.fd(), text, sizeof text);
  return got <= 0 ? std::string() : std::string(text, static_cast<size_t>(got));
}

// One line of a chip, held. Versions 1 and 2 of the interface differ only in their structures.
class HeldLine {
 public:
  HeldLine(const GpioKernel& kernel, int fd, bool version_2)
      : kernel_(kernel), line_(fd), version_2_(version_2) {}

  [[nodiscard]] std::optional<int> level() const {
    gpio_v2_line_values values{};
    values.mask = 1;
    gpiohandle_data data{};
    if (version_2_ ? ask(kernel_, line_.fd(), GPIO_V2_LINE_GET_VALUES_IOCTL, &values) != 0
                   : ask(kernel_, line_.fd(), GPIOHANDLE_GET_LINE_VALUES_IOCTL, &data) != 0)
      return std::nullopt;
    return version_2_ ? static_cast<int>(values.bits & 1) : int{data.values[0]};
  }

  [[nodiscard]] bool set(int level) const {
    gpio_v2_line_values values{};
    values.mask = 1;
    values.bits = static_cast<__u64>(level);
    gpiohandle_data data{};
    data.values[0] = static_cast<__u8>(level);
    return version_2_ ? ask(kernel_, line_.fd(), GPIO_V2_LINE_SET_VALUES_IOCTL, &values) == 0
                      : ask(kernel_, line_.fd(), GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data) == 0;
  }

  // Makes it an output of this level, without a glitch.
  [[nodiscard]] bool drive(int level) const {
    gpio_v2_line_config now{};
    now.flags = GPIO_V2_LINE_FLAG_OUTPUT;
    now.num_attrs = 1;
    now.attrs[0].mask = 1;
    now.attrs[0].attr.id = GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES;
    now.attrs[0].attr.values = static_cast<__u64>(level);
    gpiohandle_config first{};
    first.flags = GPIOHANDLE_REQUEST_OUTPUT;
    first.default_values[0] = static_cast<__u8>(level);
    return version_2_ ? ask(kernel_, line_.fd(), GPIO_V2_LINE_SET_CONFIG_IOCTL, &now) == 0
                      : ask(kernel_, line_.fd(), GPIOHANDLE_SET_CONFIG_IOCTL, &first) == 0;
  }

 private:
  GpioKernel kernel_;
  GpioFile line_;
  bool version_2_;
};

class CharacterDeviceCarrier : public SyncCarrier {
 public:
  CharacterDeviceCarrier(std::unique_ptr<HeldLine> line, std::optional<int> found)
      : line_(std::move(line)), found_(found) {}

  [[nodiscard]] std::optional<int> found_level() const override { return found_; }

  Status set(int level, SyncEdge* edge) override {
    const bool done = timed_edge(level, edge, [&] { return line_->set(level); });
    return done ? Status::ok() : system_error("sync line: cannot be set");
  }

 private:
  std::unique_ptr<HeldLine> line_;
  std::optional<int> found_;
};

class SysfsCarrier : public SyncCarrier {
 public:
  SysfsCarrier(std::string folder, std::string number, int fd, bool exported,
               std::optional<int> found)
      : folder_(std::move(folder)),
        number_(std::move(number)),
        value_(fd),
        exported_(exported),
        found_(found) {}
  ~SysfsCarrier() override {
    if (!exported_) return;
    const GpioFile unexport(::open((folder_ + "/unexport").c_str(), O_WRONLY | O_CLOEXEC));
    static_cast<void>(!::write(unexport.fd(), number_.data(), number_.size()));
  }
  SysfsCarrier(const SysfsCarrier&) = delete;
  SysfsCarrier& operator=(const SysfsCarrier&) = delete;

  [[nodiscard]] std::optional<int> found_level() const override { return found_; }

  Status set(int level, SyncEdge* edge) override {
    const char digit = level != 0 ? '1' : '0';
    const bool done =
        timed_edge(level, edge, [&] { return ::pwrite(value_.fd(), &digit, 1, 0) == 1; });
    return done ? Status::ok() : system_error("sync line: cannot be set");
  }

 private:
  std::string folder_;
  std::string number_;
  GpioFile value_;
  bool exported_;
  std::optional<int> found_;
};

// Requests a line by version 2 of the interface, or by version 1 if the kernel does not know that.
// `flags` and `level` are those of version 1: an output and its first level; without flags the line
// stays as it is.
Status hold(const GpioKernel& kernel, const GpioLine& line, __u32 flags, int level,
            std::unique_ptr<HeldLine>* out, std::string* interface) {
  const GpioFile chip(::open(line.chip.c_str(), O_RDWR | O_CLOEXEC));
  if (chip.fd() < 0) return system_error("sync line gpio:" + place(line) + ": cannot be opened");
  gpio_v2_line_request now{};
  now.offsets[0] = line.offset;
  now.num_lines = 1;
  std::strncpy(now.consumer, kConsumer, sizeof now.consumer - 1);
  if (flags == 0 && ask(kernel, chip.fd(), GPIO_V2_GET_LINE_IOCTL, &now) == 0) {
    *interface = "v2";
    *out = std::make_unique<HeldLine>(kernel, now.fd, true);
    return Status::ok();
  }
  const int why = errno;
  if (flags == 0 && !is_unknown_request(why)) return not_to_be_had(line, why);
  gpiohandle_request first{};
  first.lineoffsets[0] = line.offset;
  first.lines = 1;
  first.flags = flags;
  first.default_values[0] = static_cast<__u8>(level);
  std::strncpy(first.consumer_label, kConsumer, sizeof first.consumer_label - 1);
  if (ask(kernel, chip.fd(), GPIO_GET_LINEHANDLE_IOCTL, &first) != 0)
    return not_to_be_had(line, flags == 0 && is_unknown_request(errno) ? why : errno);
  *interface = "v1";
  *out = std::make_unique<HeldLine>(kernel, first.fd, false);
  return Status::ok();
}

}  // namespace

Status request_gpio_line(const GpioKernel& kernel, const GpioLine& line, GpioUse use,
                         std::unique_ptr<SyncCarrier>* out, std::string* interface) {
  std::unique_ptr<HeldLine> held;
  if (Status status = hold(kernel, line, 0, 0, &held, interface); !status.is_ok()) return status;
  const std::optional<int> found = held->level();
  const int level = found.value_or(0);
  if (use == GpioUse::kOutput && !held->drive(level)) {
    const int why = errno;
    if (*interface == "v2" || !is_unknown_request(why)) return not_to_be_had(line, why);
    // Linux before 5.5 cannot change a line that is held: it is released and requested again.
    held.reset();
    if (Status status = hold(kernel, line, GPIOHANDLE_REQUEST_OUTPUT, level, &held, interface);
        !status.is_ok())
      return status;
  }
  *out = std::make_unique<CharacterDeviceCarrier>(std::move(held), found);
  return Status::ok();
}

Status open_sysfs_gpio(const GpioKernel& kernel, const std::string& number,
                       std::unique_ptr<SyncCarrier>* out) {
  const std::string what = "sync line gpio:sysfs:" + number;
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
    return {StatusCode::kBadInput, what + ": expected a number, as in gpio:sysfs:249"};
  const std::string line = kernel.sysfs + "/gpio" + number;
  const bool there = ::access(line.c_str(), F_OK) == 0;
  if (!there && !write_file(kernel.sysfs + "/export", number))
    return errno == EBUSY ? Status{StatusCode::kBadInput,
                                   what + ": the kernel or another program uses this pin"}
                          : system_error(what + ": cannot be exported");
  const std::string value = read_file(line + "/value");
  const std::optional<int> found =
      value.empty() ? std::optional<int>() : (value.front() == '1' ? 1 : 0);
  // "low" and "high" make it an output without a glitch (Documentation, gpio/sysfs).
  if (!write_file(line + "/direction", found.value_or(0) == 1 ? "high" : "low"))
    return system_error(what + ": not to be had as an output");
  const int fd = ::open((line + "/value").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return system_error(what + ": cannot be opened");
  *out = std::make_unique<SysfsCarrier>(kernel.sysfs, number, fd, !there, found);
  return Status::ok();
}

}  // namespace opjoule
