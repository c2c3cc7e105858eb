#include "mcu/alert_input.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace opjoule::rig {
namespace {

constexpr std::uint16_t kPind = 0x29;
constexpr int kPin = 2;

}  // namespace

AlertInput::AlertInput(Mcu& mcu, std::vector<PowerSensor*> sensors)
    : mcu_(mcu),
      sensors_(std::move(sensors)),
      timer_(mcu, [this](std::uint64_t due) { refresh(due); }) {
  mcu.on_reset([this] {
    mcu_.reg(kPind) = static_cast<std::uint8_t>(high_ ? 1 << kPin : 0);
    refresh(mcu_.cycle());
  });
  drive(true);
}

void AlertInput::drive(bool high) {
  if (high == high_) return;
  high_ = high;
  avr_raise_irq(avr_io_getirq(mcu_.avr(), AVR_IOCTL_IOPORT_GETIRQ('D'), kPin), high);
}

void AlertInput::refresh(std::uint64_t cycle) {
  const double now_s = mcu_.time_s(cycle);
  bool low = false;
  double next_s = std::numeric_limits<double>::infinity();
  for (PowerSensor* sensor : sensors_) {
    low |= sensor->alert_low(now_s);
    next_s = std::min(next_s, sensor->next_alert_change_s());
  }
  drive(!low);
  if (std::isfinite(next_s))
    timer_.arm(std::max(mcu_.cycle_at(next_s), cycle + 1));
  else
    timer_.cancel();
}

}  // namespace opjoule::rig
