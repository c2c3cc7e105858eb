// GPIO lines of this kernel: found by name or number, shown, requested.
//
// Source: Linux user-space API, linux/gpio.h: version 2 (since 5.10), version 1 (since 4.8; a
// kernel may be built without it). An older kernel has neither, only the numbers in
// /sys/class/gpio. The direction of a held line changes without a glitch (docs.kernel.org,
// userspace-api/gpio: GPIO_V2_LINE_SET_CONFIG_IOCTL; GPIOHANDLE_SET_CONFIG_IOCTL since 5.5). Thread
// safety: none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "board/sync_carrier.h"
#include "loader/status.h"

namespace opjoule {

// Where the chips are and how the kernel is asked; tests put their own in.
struct GpioKernel {
  std::string devices = "/dev";
  std::string sysfs = "/sys/class/gpio";
  int (*control)(int fd, unsigned long request, void* argument) = nullptr;  // nullptr: ioctl(2)
};

struct GpioLine {
  std::string chip;   // device file
  std::string label;  // of the chip's driver
  unsigned offset = 0;
  std::string name;      // empty: the kernel knows none
  std::string consumer;  // who has it now; empty: nobody, or unknown
  bool used = false;
  bool output = false;
};

// Every line of every chip that can be opened; `denied` gets the chips that cannot, with the
// reason.
std::vector<GpioLine> gpio_lines(const GpioKernel& kernel, std::vector<std::string>* denied);

// True for a name of a pin of the header, such as GPIO17, PIN_27 or J2 Header Pin29. A line without
// a name may be such a pin; "Eth MDIO" or "UART TX" is none.
bool is_header_name(const std::string& name);

// What a --sync text after "gpio:" names: "/dev/gpiochip0:17" or a line's name. kBadInput: no such
// line, several of that name, or a number whose line has another use by its name: such a line can
// be taken only by its name.
Status find_gpio_line(const GpioKernel& kernel, const std::string& text, GpioLine* out);

enum class GpioUse {
  kOutput,  // driven, at the level at which it is found (low where that cannot be read)
  kAsItIs,  // only held, to see whether it is free
};

// `interface` says how: "v2" or "v1".
Status request_gpio_line(const GpioKernel& kernel, const GpioLine& line, GpioUse use,
                         std::unique_ptr<SyncCarrier>* out, std::string* interface);

// Line `number` of /sys/class/gpio, driven at the level at which it is found; given back when the
// carrier goes.
Status open_sysfs_gpio(const GpioKernel& kernel, const std::string& number,
                       std::unique_ptr<SyncCarrier>* out);

}  // namespace opjoule
