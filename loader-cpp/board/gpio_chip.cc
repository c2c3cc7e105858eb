#include "board/gpio_chip.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <set>

#include "board/system_error.h"
#include "board/timed_edge.h"

namespace opjoule {
namespace {

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

int ask(const GpioKernel& kernel, int fd, unsigned long request, void* argument) {
  if (kernel.control != nullptr) return kernel.control(fd, request, argument);
  return ::ioctl(fd, request, argument);
}

// What a kernel says to a request that it does not know: EINVAL before 5.11 or so, ENOTTY since,
// and ENOSYS or EPERM from a system-call filter.
bool is_unknown_request(int error_number) {
  return error_number == EINVAL || error_number == ENOTTY || error_number == ENOSYS ||
         error_number == EPERM;
}

std::string text(const char* field, size_t size) { return {field, ::strnlen(field, size)}; }

bool read_line(const GpioKernel& kernel, int fd, unsigned offset, GpioLine* line) {
  line->offset = offset;
  gpio_v2_line_info now{};
  now.offset = offset;
  if (ask(kernel, fd, GPIO_V2_GET_LINEINFO_IOCTL, &now) == 0) {
    line->name = text(now.name, sizeof now.name);
    line->consumer = text(now.consumer, sizeof now.consumer);
    line->used = (now.flags & GPIO_V2_LINE_FLAG_USED) != 0;
    line->output = (now.flags & GPIO_V2_LINE_FLAG_OUTPUT) != 0;
    return true;
  }
  gpioline_info first{};
  first.line_offset = offset;
  if (ask(kernel, fd, GPIO_GET_LINEINFO_IOCTL, &first) != 0) return false;
  line->name = text(first.name, sizeof first.name);
  line->consumer = text(first.consumer, sizeof first.consumer);
  line->used = (first.flags & GPIOLINE_FLAG_KERNEL) != 0;
  line->output = (first.flags & GPIOLINE_FLAG_IS_OUT) != 0;
  return true;
}

// Device files of the chips in order of their numbers, each chip once: /dev/gpiochip4 is a link to
// gpiochip0 on a Raspberry Pi 5.
std::vector<std::string> chip_files(const GpioKernel& kernel) {
  std::vector<std::pair<unsigned, std::string>> numbered;
  if (DIR* folder = ::opendir(kernel.devices.c_str())) {
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      unsigned number = 0;
      if (!name.starts_with("gpiochip")) continue;
      const auto parsed = std::from_chars(name.data() + 8, name.data() + name.size(), number);
      if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size())
        numbered.emplace_back(number, kernel.devices + "/" + name);
    }
    ::closedir(folder);
  }
  std::sort(numbered.begin(), numbered.end());
  std::vector<std::string> files;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const auto& [number, file] : numbered) {
    struct stat about {};
    if (::stat(file.c_str(), &about) == 0 && seen.emplace(about.st_dev, about.st_ino).second)
      files.push_back(file);
  }
  return files;
}

class CharacterDeviceCarrier : public SyncCarrier {
 public:
  CharacterDeviceCarrier(const GpioKernel& kernel, int fd, bool version_2)
      : kernel_(kernel), line_(fd), version_2_(version_2) {}

  Status set(int level, SyncEdge* edge) override {
    gpio_v2_line_values values{};
    values.mask = 1;
    values.bits = static_cast<__u64>(level);
    gpiohandle_data data{};
    data.values[0] = static_cast<__u8>(level);
    const bool done = timed_edge(level, edge, [&] {
      return version_2_ ? ask(kernel_, line_.fd(), GPIO_V2_LINE_SET_VALUES_IOCTL, &values) == 0
                        : ask(kernel_, line_.fd(), GPIOHANDLE_SET_LINE_VALUES_IOCTL, &data) == 0;
    });
    return done ? Status::ok() : system_error("sync line: cannot be set");
  }

 private:
  GpioKernel kernel_;
  File line_;
  bool version_2_;
};

class SysfsCarrier : public SyncCarrier {
 public:
  SysfsCarrier(std::string folder, std::string number, int fd, bool exported)
      : folder_(std::move(folder)), number_(std::move(number)), value_(fd), exported_(exported) {}
  ~SysfsCarrier() override {
    if (!exported_) return;
    const File unexport(::open((folder_ + "/unexport").c_str(), O_WRONLY | O_CLOEXEC));
    static_cast<void>(!::write(unexport.fd(), number_.data(), number_.size()));
  }
  SysfsCarrier(const SysfsCarrier&) = delete;
  SysfsCarrier& operator=(const SysfsCarrier&) = delete;

  Status set(int level, SyncEdge* edge) override {
    const char digit = level != 0 ? '1' : '0';
    const bool done =
        timed_edge(level, edge, [&] { return ::pwrite(value_.fd(), &digit, 1, 0) == 1; });
    return done ? Status::ok() : system_error("sync line: cannot be set");
  }

 private:
  std::string folder_;
  std::string number_;
  File value_;
  bool exported_;
};

bool write_file(const std::string& path, const std::string& value) {
  const File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file.fd() >= 0 &&
         ::write(file.fd(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::string place(const GpioLine& line) {
  const std::string at = line.chip + ":" + std::to_string(line.offset);
  return line.name.empty() ? at : at + " (" + line.name + ")";
}

Status not_to_be_had(const GpioLine& line, int error_number) {
  const std::string what = "sync line gpio:" + place(line);
  if (error_number == EBUSY)
    return {StatusCode::kBadInput, what + ": " +
                                       (line.consumer.empty() ? "another program" : line.consumer) +
                                       " uses this pin"};
  return system_error(what + ": not to be had as an output", error_number);
}

Status no_line_called(const GpioKernel& kernel, const std::string& name,
                      const std::vector<GpioLine>& lines, const std::vector<std::string>& denied) {
  if (chip_files(kernel).empty())
    return {StatusCode::kBadInput,
            "sync line gpio:" + name + ": this kernel has no GPIO character device (" +
                kernel.devices +
                "/gpiochip0); name the line by its number there, as in gpio:sysfs:249"};
  if (!denied.empty())
    return {StatusCode::kBadInput, "sync line gpio:" + name + ": " + denied.front()};
  std::string known;
  for (const GpioLine& line : lines)
    if (!line.used && !line.name.empty() && is_header_name(line.name))
      known += (known.empty() ? "" : ", ") + line.name;
  return {StatusCode::kBadInput, "sync line gpio:" + name + ": no line has this name; " +
                                     (known.empty() ? "none of a header has one, so give CHIP:LINE"
                                                    : "free are " + known)};
}

// On a Raspberry Pi line N of the header's chip is GPIO N, also for kernels that give no names
// (drivers/pinctrl/bcm/pinctrl-bcm2835.c, drivers/pinctrl/pinctrl-rp1.c).
bool is_unnamed_pi_line(const GpioLine& line, const std::string& name) {
  return (line.label.starts_with("pinctrl-bcm2") || line.label.starts_with("pinctrl-rp1")) &&
         line.name.empty() && name == "GPIO" + std::to_string(line.offset);
}

Status find_by_name(const GpioKernel& kernel, const std::string& name, GpioLine* out) {
  std::vector<std::string> denied;
  const std::vector<GpioLine> lines = gpio_lines(kernel, &denied);
  std::vector<GpioLine> found;
  for (const GpioLine& line : lines)
    if (line.name == name || is_unnamed_pi_line(line, name)) found.push_back(line);
  if (found.empty()) return no_line_called(kernel, name, lines, denied);
  if (found.size() > 1)
    return {StatusCode::kBadInput, "sync line gpio:" + name + ": several lines have this name (" +
                                       place(found[0]) + ", " + place(found[1]) +
                                       "); give one of them as gpio:CHIP:LINE"};
  *out = found.front();
  return Status::ok();
}

}  // namespace

std::vector<GpioLine> gpio_lines(const GpioKernel& kernel, std::vector<std::string>* denied) {
  std::vector<GpioLine> lines;
  for (const std::string& file : chip_files(kernel)) {
    const File chip(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    gpiochip_info about{};
    if (chip.fd() < 0 || ask(kernel, chip.fd(), GPIO_GET_CHIPINFO_IOCTL, &about) != 0) {
      denied->push_back(system_error(file + ": cannot be opened").message());
      continue;
    }
    for (unsigned offset = 0; offset < about.lines; ++offset) {
      GpioLine line;
      line.chip = file;
      line.label = text(about.label, sizeof about.label);
      if (read_line(kernel, chip.fd(), offset, &line)) lines.push_back(line);
    }
  }
  return lines;
}

bool is_header_name(const std::string& name) {
  std::string lower;
  for (const char letter : name)
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto numbered = [&lower](const std::string& prefix) {
    return lower.starts_with(prefix) && lower.size() > prefix.size() &&
           std::isdigit(static_cast<unsigned char>(lower[prefix.size()])) != 0;
  };
  return lower.find("header") != std::string::npos || lower.starts_with("gpio_") ||
         numbered("gpio") || numbered("pin_") || numbered("pin");
}

Status find_gpio_line(const GpioKernel& kernel, const std::string& text, GpioLine* out) {
  if (!text.starts_with("/")) return find_by_name(kernel, text, out);
  const size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  GpioLine line;
  line.chip = text.substr(0, colon);
  const char* digits = text.data() + (colon == std::string::npos ? text.size() : colon + 1);
  const auto parsed = std::from_chars(digits, end, line.offset);
  if (digits == end || parsed.ec != std::errc() || parsed.ptr != end)
    return {StatusCode::kBadInput, "--sync gpio:" + text + ": expected gpio:CHIP:LINE"};
  const File chip(::open(line.chip.c_str(), O_RDWR | O_CLOEXEC));
  if (chip.fd() < 0) return system_error("sync line gpio:" + text + ": cannot be opened");
  read_line(kernel, chip.fd(), line.offset, &line);
  if (!line.name.empty() && !is_header_name(line.name))
    return {StatusCode::kBadInput,
            "sync line gpio:" + text + ": the board calls it '" + line.name +
                "', which is no pin of the header, and driving it may cut the board off; if it is "
                "meant, give its name: gpio:" +
                line.name};
  *out = line;
  return Status::ok();
}

Status request_gpio_line(const GpioKernel& kernel, const GpioLine& line, GpioUse use,
                         std::unique_ptr<SyncCarrier>* out, std::string* interface) {
  const File chip(::open(line.chip.c_str(), O_RDWR | O_CLOEXEC));
  if (chip.fd() < 0) return system_error("sync line gpio:" + place(line) + ": cannot be opened");
  constexpr const char* kConsumer = "opjoule-sync";
  gpio_v2_line_request now{};
  now.offsets[0] = line.offset;
  now.num_lines = 1;
  std::strncpy(now.consumer, kConsumer, sizeof now.consumer - 1);
  if (use == GpioUse::kOutput) now.config.flags = GPIO_V2_LINE_FLAG_OUTPUT;
  if (ask(kernel, chip.fd(), GPIO_V2_GET_LINE_IOCTL, &now) == 0) {
    *interface = "v2";
    *out = std::make_unique<CharacterDeviceCarrier>(kernel, now.fd, true);
    return Status::ok();
  }
  const int why = errno;
  if (!is_unknown_request(why)) return not_to_be_had(line, why);
  gpiohandle_request first{};
  first.lineoffsets[0] = line.offset;
  first.lines = 1;
  std::strncpy(first.consumer_label, kConsumer, sizeof first.consumer_label - 1);
  if (use == GpioUse::kOutput) first.flags = GPIOHANDLE_REQUEST_OUTPUT;
  if (ask(kernel, chip.fd(), GPIO_GET_LINEHANDLE_IOCTL, &first) == 0) {
    *interface = "v1";
    *out = std::make_unique<CharacterDeviceCarrier>(kernel, first.fd, false);
    return Status::ok();
  }
  return not_to_be_had(line, is_unknown_request(errno) ? why : errno);
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
  // "low" makes it an output without a moment of the other level (Documentation, gpio/sysfs).
  if (!write_file(line + "/direction", "low"))
    return system_error(what + ": not to be had as an output");
  const int fd = ::open((line + "/value").c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return system_error(what + ": cannot be opened");
  *out = std::make_unique<SysfsCarrier>(kernel.sysfs, number, fd, !there);
  return Status::ok();
}

}  // namespace opjoule
