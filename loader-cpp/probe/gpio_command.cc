// The board's GPIO lines; the one of --sync is requested, and driven if asked to.
#include <nlohmann/json.hpp>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/gpio_chip.h"
#include "board/output.h"
#include "probe/board_commands.h"

namespace opjoule {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kPulseNs = 500'000'000;

void print_gpio(const GpioLine& line, const std::string& interface) {
  Json json = {{"chip", line.chip}, {"line", line.offset},
               {"name", line.name}, {"consumer", line.consumer},
               {"used", line.used}, {"direction", line.output ? "out" : "in"}};
  json["header"] = line.name.empty() ? Json(nullptr) : Json(is_header_name(line.name));
  if (!interface.empty()) json["interface"] = interface;
  print_line(Json{{"gpio", json}}.dump(-1, ' ', false, Json::error_handler_t::replace));
}

Status play(SyncCarrier* carrier, uint32_t pulses) {
  SyncEdge reset;
  if (pulses > 0 && carrier->found_level() == 1)
    if (Status status = carrier->set(0, &reset); !status.is_ok()) return status;
  int64_t next_ns = board_ns();
  for (uint32_t i = 0; i < 2 * pulses; ++i) {
    SyncEdge made;
    if (Status status = carrier->set(i % 2 == 0 ? 1 : 0, &made); !status.is_ok()) return status;
    const Json edge = {{"board_ns", made.board_ns}, {"u_ns", made.u_ns}, {"level", made.level}};
    print_line(Json{{"edge", edge}}.dump());
    next_ns += kPulseNs;
    sleep_until(next_ns);
  }
  return Status::ok();
}

Status show_one(const std::string& sync, uint32_t pulses) {
  const std::string text = sync.starts_with("gpio:") ? sync.substr(5) : "";
  std::unique_ptr<SyncCarrier> carrier;
  if (text.empty() || text.starts_with("sysfs:")) {
    // Shows only whether the line can be requested.
    if (text.empty() || pulses == 0) return Status::ok();
    if (Status status = SyncCarrier::open(sync, &carrier); !status.is_ok()) return status;
    return play(carrier.get(), pulses);
  }
  GpioLine line;
  if (Status status = find_gpio_line(GpioKernel{}, text, &line); !status.is_ok()) return status;
  std::string interface;
  const GpioUse use = pulses > 0 ? GpioUse::kOutput : GpioUse::kAsItIs;
  if (Status status = request_gpio_line(GpioKernel{}, line, use, &carrier, &interface);
      !status.is_ok())
    return status;
  print_gpio(line, interface);
  return play(carrier.get(), pulses);
}

}  // namespace

int gpio_command(const std::string& sync, uint32_t pulses, std::string_view program) {
  if (!sync.empty()) {
    const Status status = show_one(sync, pulses);
    return status.is_ok() ? kExitOk : report_failure(status, program);
  }
  std::vector<std::string> denied;
  for (const GpioLine& line : gpio_lines(GpioKernel{}, &denied)) print_gpio(line, "");
  for (const std::string& why : denied) print_line(Json{{"denied", why}}.dump());
  return kExitOk;
}

}  // namespace opjoule
