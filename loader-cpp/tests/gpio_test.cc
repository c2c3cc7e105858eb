// The GPIO character device as linux/gpio.h describes it, in three ages, on a board with the lines
// of an ODROID-C2 (names: arch/arm64/boot/dts/amlogic/meson-gxbb-odroidc2.dts).
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/gpio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "board/gpio_chip.h"

namespace opjoule {
namespace {

struct FakeLine {
  std::string name;
  bool used = false;
  int level = -1;             // -1: an input
  int wire = 0;               // what is read from it as an input
  std::vector<int> levels{};  // that it was driven to
};

// What the running kernel knows; one at a time, since control() is a plain function.
struct FakeKernel {
  std::string label = "periphs-banks";
  int refusal = ENOTTY;  // for requests that it does not know
  bool version_1 = true;
  bool configures_1 = true;  // version 1 since Linux 5.5
  bool version_2 = true;
  std::map<std::string, std::vector<FakeLine>> chips;
  std::map<int, FakeLine*> requested;
};
FakeKernel fake;

FakeLine* line_of(int fd, unsigned offset) {
  const auto chip = fake.chips.find(
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)).filename());
  if (chip == fake.chips.end() || offset >= chip->second.size()) return nullptr;
  return &chip->second[offset];
}

int fail(int error_number) {
  errno = error_number;
  return -1;
}

int drive_line(FakeLine* line, int level) {
  line->levels.push_back(level);
  line->level = level;
  return 0;
}

int request_line(int fd, unsigned offset, bool output, int level, int* line_fd) {
  FakeLine* line = line_of(fd, offset);
  if (line == nullptr) return fail(EINVAL);
  if (line->used) return fail(EBUSY);
  if (output) drive_line(line, level);
  *line_fd = ::open("/dev/null", O_RDWR);
  fake.requested[*line_fd] = line;
  return 0;
}

int set_line(int fd, int level) { return drive_line(fake.requested.at(fd), level); }

int get_line(int fd) {
  const FakeLine& line = *fake.requested.at(fd);
  return line.level >= 0 ? line.level : line.wire;
}

int control(int fd, unsigned long request, void* argument) {
  if (request == GPIO_GET_CHIPINFO_IOCTL) {
    const auto name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    auto* about = static_cast<gpiochip_info*>(argument);
    about->lines = static_cast<__u32>(fake.chips[name.filename()].size());
    std::strncpy(about->label, fake.label.c_str(), sizeof about->label - 1);
    return 0;
  }
  const bool is_2 = request == GPIO_V2_GET_LINEINFO_IOCTL || request == GPIO_V2_GET_LINE_IOCTL ||
                    request == GPIO_V2_LINE_SET_VALUES_IOCTL ||
                    request == GPIO_V2_LINE_GET_VALUES_IOCTL ||
                    request == GPIO_V2_LINE_SET_CONFIG_IOCTL;
  if (is_2 ? !fake.version_2 : !fake.version_1) return fail(fake.refusal);
  switch (request) {
    case GPIO_V2_GET_LINEINFO_IOCTL: {
      auto* info = static_cast<gpio_v2_line_info*>(argument);
      const FakeLine* line = line_of(fd, info->offset);
      if (line == nullptr) return fail(EINVAL);
      std::strncpy(info->name, line->name.c_str(), sizeof info->name - 1);
      if (line->used) std::strncpy(info->consumer, "mdio", sizeof info->consumer - 1);
      info->flags = (line->used ? GPIO_V2_LINE_FLAG_USED : 0) |
                    (line->level >= 0 ? GPIO_V2_LINE_FLAG_OUTPUT : GPIO_V2_LINE_FLAG_INPUT);
      return 0;
    }
    case GPIO_GET_LINEINFO_IOCTL: {
      auto* info = static_cast<gpioline_info*>(argument);
      const FakeLine* line = line_of(fd, info->line_offset);
      if (line == nullptr) return fail(EINVAL);
      std::strncpy(info->name, line->name.c_str(), sizeof info->name - 1);
      info->flags = line->used ? GPIOLINE_FLAG_KERNEL : 0;
      return 0;
    }
    case GPIO_V2_GET_LINE_IOCTL: {
      auto* asked = static_cast<gpio_v2_line_request*>(argument);
      return request_line(fd, asked->offsets[0],
                          (asked->config.flags & GPIO_V2_LINE_FLAG_OUTPUT) != 0, 0, &asked->fd);
    }
    case GPIO_GET_LINEHANDLE_IOCTL: {
      auto* asked = static_cast<gpiohandle_request*>(argument);
      return request_line(fd, asked->lineoffsets[0],
                          (asked->flags & GPIOHANDLE_REQUEST_OUTPUT) != 0, asked->default_values[0],
                          &asked->fd);
    }
    case GPIO_V2_LINE_GET_VALUES_IOCTL:
      static_cast<gpio_v2_line_values*>(argument)->bits = static_cast<__u64>(get_line(fd));
      return 0;
    case GPIOHANDLE_GET_LINE_VALUES_IOCTL:
      static_cast<gpiohandle_data*>(argument)->values[0] = static_cast<__u8>(get_line(fd));
      return 0;
    case GPIO_V2_LINE_SET_CONFIG_IOCTL: {
      const auto* config = static_cast<gpio_v2_line_config*>(argument);
      CHECK(config->flags == GPIO_V2_LINE_FLAG_OUTPUT);
      CHECK(config->attrs[0].attr.id == GPIO_V2_LINE_ATTR_ID_OUTPUT_VALUES);
      return set_line(fd, static_cast<int>(config->attrs[0].attr.values));
    }
    case GPIOHANDLE_SET_CONFIG_IOCTL: {
      const auto* config = static_cast<gpiohandle_config*>(argument);
      if (!fake.configures_1) return fail(fake.refusal);
      return set_line(fd, config->default_values[0]);
    }
    case GPIO_V2_LINE_SET_VALUES_IOCTL:
      return set_line(fd, static_cast<int>(static_cast<gpio_v2_line_values*>(argument)->bits));
    case GPIOHANDLE_SET_LINE_VALUES_IOCTL:
      return set_line(fd, static_cast<gpiohandle_data*>(argument)->values[0]);
    default:
      return fail(fake.refusal);
  }
}

class Board {
 public:
  Board() {
    std::filesystem::create_directories(folder_ / "dev");
    fake = FakeKernel{};
    fake.chips["gpiochip0"] = {{"UART TX"}, {"UART RX"}, {"Blue LED", true}};
    fake.chips["gpiochip1"] = {{"Eth MDIO", true}, {"Eth MDC"}, {"J2 Header Pin29"}, {""}};
    for (const auto& [name, lines] : fake.chips) std::ofstream(folder_ / "dev" / name) << "";
    kernel.devices = folder_ / "dev";
    kernel.sysfs = folder_ / "sys";
    kernel.control = control;
  }
  ~Board() { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string chip(int number) const {
    return kernel.devices + "/gpiochip" + std::to_string(number);
  }

  GpioKernel kernel;

 private:
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("opjoule-gpio-" + std::to_string(getpid()));
};

FakeLine& header_pin() { return fake.chips["gpiochip1"][2]; }

TEST_CASE("a line is found by its name, whatever chip it is on") {
  const Board board;
  GpioLine line;
  REQUIRE(find_gpio_line(board.kernel, "J2 Header Pin29", &line).is_ok());
  CHECK(line.chip == board.chip(1));
  CHECK(line.offset == 2);
}

TEST_CASE("a chip that has two device files is one chip") {
  const Board board;
  std::filesystem::create_symlink("gpiochip1", board.chip(4));
  GpioLine line;
  CHECK(find_gpio_line(board.kernel, "J2 Header Pin29", &line).is_ok());
}

TEST_CASE("a name that no line has is told with those that are free") {
  const Board board;
  GpioLine line;
  const Status status = find_gpio_line(board.kernel, "GPIO17", &line);
  CHECK(status.message().ends_with("no line has this name; free are J2 Header Pin29"));
}

TEST_CASE("a Raspberry Pi whose kernel gives no names has GPIO numbers all the same") {
  const Board board;
  fake.chips["gpiochip1"] = std::vector<FakeLine>(28);
  fake.label = "pinctrl-bcm2835";
  GpioLine line;
  REQUIRE(find_gpio_line(board.kernel, "GPIO17", &line).is_ok());
  CHECK(line.chip == board.chip(1));
  CHECK(line.offset == 17);
  fake.label = "periphs-banks";
  CHECK_FALSE(find_gpio_line(board.kernel, "GPIO17", &line).is_ok());
}

TEST_CASE("a name that two lines have is refused") {
  const Board board;
  fake.chips["gpiochip0"].push_back({"J2 Header Pin29"});
  GpioLine line;
  const Status status = find_gpio_line(board.kernel, "J2 Header Pin29", &line);
  CHECK(status.message().find("several lines have this name") != std::string::npos);
}

TEST_CASE("a number whose name is no header pin is refused, its name is not") {
  const Board board;
  GpioLine line;
  for (const char* text : {"0", "1"}) {
    const Status status = find_gpio_line(board.kernel, board.chip(1) + ":" + text, &line);
    CHECK(status.code() == StatusCode::kBadInput);
    CHECK(status.message().find("which is no pin of the header") != std::string::npos);
  }
  CHECK(find_gpio_line(board.kernel, board.chip(1) + ":2", &line).is_ok());
  CHECK(find_gpio_line(board.kernel, board.chip(1) + ":3", &line).is_ok());
  CHECK(find_gpio_line(board.kernel, "Eth MDC", &line).is_ok());
}

TEST_CASE("names of header pins") {
  for (const char* name : {"GPIO17", "GPIO_GCLK", "PIN_27", "J2 Header Pin29", "7J1 Header Pin5"})
    CHECK(is_header_name(name));
  for (const char* name : {"Eth MDIO", "UART TX", "ID_SDA", "SDA1", "STATUS_LED", "-"})
    CHECK_FALSE(is_header_name(name));
}

TEST_CASE(
    "version 2 is used, else version 1, whatever the kernel calls a request it does not know") {
  for (const int refusal : {EINVAL, ENOTTY, ENOSYS, EPERM}) {
    for (const bool version_2 : {true, false}) {
      const Board board;
      fake.version_2 = version_2;
      fake.refusal = refusal;
      GpioLine line;
      REQUIRE(find_gpio_line(board.kernel, "J2 Header Pin29", &line).is_ok());
      std::unique_ptr<SyncCarrier> carrier;
      std::string interface;
      REQUIRE(
          request_gpio_line(board.kernel, line, GpioUse::kOutput, &carrier, &interface).is_ok());
      CHECK(interface == (version_2 ? "v2" : "v1"));
      CHECK(header_pin().level == 0);
      SyncEdge edge;
      REQUIRE(carrier->set(1, &edge).is_ok());
      CHECK(header_pin().level == 1);
      CHECK(edge.u_ns > 0);
    }
  }
}

TEST_CASE("a line is taken over at the level at which it is found, without an edge") {
  for (const auto& [version_2, configures_1] :
       {std::pair(true, true), std::pair(false, true), std::pair(false, false)})
    for (const int found : {0, 1}) {
      const Board board;
      fake.version_2 = version_2;
      fake.configures_1 = configures_1;
      header_pin().wire = found;
      GpioLine line;
      REQUIRE(find_gpio_line(board.kernel, "J2 Header Pin29", &line).is_ok());
      std::unique_ptr<SyncCarrier> carrier;
      std::string interface;
      REQUIRE(
          request_gpio_line(board.kernel, line, GpioUse::kOutput, &carrier, &interface).is_ok());
      CHECK(carrier->found_level() == found);
      CHECK(header_pin().levels == std::vector<int>{found});
    }
}

TEST_CASE("a line that is only looked at is not driven") {
  const Board board;
  GpioLine line;
  REQUIRE(find_gpio_line(board.kernel, "J2 Header Pin29", &line).is_ok());
  std::unique_ptr<SyncCarrier> carrier;
  std::string interface;
  for (const bool version_2 : {true, false}) {
    fake.version_2 = version_2;
    REQUIRE(request_gpio_line(board.kernel, line, GpioUse::kAsItIs, &carrier, &interface).is_ok());
    CHECK(header_pin().level == -1);
  }
}

TEST_CASE("a line that is taken is refused with who has it") {
  const Board board;
  GpioLine line;
  REQUIRE(find_gpio_line(board.kernel, "Eth MDIO", &line).is_ok());
  std::unique_ptr<SyncCarrier> carrier;
  std::string interface;
  const Status status =
      request_gpio_line(board.kernel, line, GpioUse::kOutput, &carrier, &interface);
  CHECK(status.message().ends_with("mdio uses this pin"));
  CHECK(fake.chips["gpiochip1"][0].level == -1);
}

TEST_CASE("a kernel without a character device is told, with the way there is") {
  const Board board;
  std::filesystem::remove(board.chip(0));
  std::filesystem::remove(board.chip(1));
  GpioLine line;
  const Status status = find_gpio_line(board.kernel, "GPIO17", &line);
  CHECK(status.message().find("gpio:sysfs:249") != std::string::npos);
}

TEST_CASE("a line of sysfs is taken at the level at which it is found") {
  for (const auto& [value, direction] : {std::pair("0", "low"), std::pair("1", "high")}) {
    const Board board;
    const std::filesystem::path line = board.kernel.sysfs + "/gpio249";
    std::filesystem::create_directories(line);
    std::ofstream(line / "direction") << "in";
    std::ofstream(line / "value") << value;
    std::unique_ptr<SyncCarrier> carrier;
    REQUIRE(open_sysfs_gpio(board.kernel, "249", &carrier).is_ok());
    std::string word;
    std::ifstream(line / "direction") >> word;
    CHECK(word == direction);
    CHECK(carrier->found_level() == (*value - '0'));
  }
}

TEST_CASE("a line of sysfs is set by its value file") {
  const Board board;
  const std::filesystem::path line = board.kernel.sysfs + "/gpio249";
  std::filesystem::create_directories(line);
  std::ofstream(line / "direction") << "in";
  std::ofstream(line / "value") << "0";
  const auto content = [&line](const char* file) {
    std::string word;
    std::ifstream(line / file) >> word;
    return word;
  };
  std::unique_ptr<SyncCarrier> carrier;
  REQUIRE(open_sysfs_gpio(board.kernel, "249", &carrier).is_ok());
  CHECK(content("direction") == "low");
  SyncEdge edge;
  REQUIRE(carrier->set(1, &edge).is_ok());
  CHECK(content("value") == "1");
  CHECK(edge.u_ns > 0);
  CHECK(open_sysfs_gpio(board.kernel, "250", &carrier).message().find("cannot be exported") !=
        std::string::npos);
  CHECK(open_sysfs_gpio(board.kernel, "2x", &carrier).code() == StatusCode::kBadInput);
}

}  // namespace
}  // namespace opjoule
