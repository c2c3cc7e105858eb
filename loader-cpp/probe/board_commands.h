// Commands about the board itself: how its clock is steered, its GPIO lines. Each prints JSON lines
// and gives an exit code; messages begin with the program's name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

// How the kernel steers the clock, as JSON: adjtimex(2), frequency in units of 2^-16 ppm, offset in
// us, or in ns with STA_NANO.
Status clock_steering(std::string* json);

// Lists the GPIO lines; with `sync` (gpio:NAME, ...) requests that one and drives it with `pulses`
// pulses of half a second.
int gpio_command(const std::string& sync, uint32_t pulses, std::string_view program);

}  // namespace opjoule
