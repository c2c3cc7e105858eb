#include <sys/timex.h>

#include "loader/system_error.h"
#include "probe/board_commands.h"

namespace opjoule {

Status clock_steering(std::string* json) {
  timex now{};
  const int state = ::adjtimex(&now);
  if (state < 0) return system_error("adjtimex");
  const double offset_unit_s = (now.status & STA_NANO) != 0 ? 1e-9 : 1e-6;
  *json = "{\"status\":" + std::to_string(now.status) +
          ",\"synchronized\":" + ((now.status & STA_UNSYNC) == 0 ? "true" : "false") +
          ",\"frequency_ppm\":" + std::to_string(static_cast<double>(now.freq) / 65536.0) +
          ",\"offset_s\":" + std::to_string(static_cast<double>(now.offset) * offset_unit_s) +
          ",\"tick_us\":" + std::to_string(now.tick) + "}";
  return Status::ok();
}

}  // namespace opjoule
