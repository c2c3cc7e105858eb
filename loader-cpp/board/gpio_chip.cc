#include "board/gpio_chip.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <set>

#include "board/gpio_kernel.h"
#include "loader/system_error.h"

namespace opjoule {
namespace {

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

// Device files of the chips in the order of their numbers, each chip once: on a Raspberry Pi 5
// /dev/gpiochip4 is a link to gpiochip0.
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
    struct stat about{};
    if (::stat(file.c_str(), &about) == 0 && seen.emplace(about.st_dev, about.st_ino).second)
      files.push_back(file);
  }
  return files;
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
    const GpioFile chip(::open(file.c_str(), O_RDWR | O_CLOEXEC));
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
  const GpioFile chip(::open(line.chip.c_str(), O_RDWR | O_CLOEXEC));
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

}  // namespace opjoule
