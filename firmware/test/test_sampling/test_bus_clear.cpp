// A held bus against a device that has lost step, bit by bit.
#include <doctest/doctest.h>

#include "bus_clear.h"

using namespace opjoule;

namespace {

// Sends a byte from some bit on, as a device does that was left in the middle of a read: a new bit
// after each falling clock, then a look at the acknowledge, then the next byte; a STOP ends it.
class StuckDevice {
 public:
  StuckDevice(uint8_t byte, int bit) : byte_(byte), bit_(bit) {}

  bool data_is_high() { return !data_pulled_ && !holds(); }
  void pull_clock() {
    clock_low_ = true;
    if (!sending_) return;
    if (bit_ == 8) {
      if (!acknowledged_) sending_ = false;
      bit_ = 0;
    } else {
      ++bit_;
    }
  }
  void release_clock() {
    clock_low_ = false;
    ++clocks;
    acknowledged_ = !data_is_high();
  }
  void pull_data() { data_pulled_ = true; }
  void release_data() {
    const bool was_low = !data_is_high();
    data_pulled_ = false;
    if (was_low && data_is_high() && !clock_low_) {
      ++stops;
      sending_ = false;
    }
  }
  void wait() { ++waits; }

  int clocks = 0;
  int stops = 0;
  int waits = 0;

 private:
  bool holds() const { return sending_ && bit_ < 8 && !(byte_ >> (7 - bit_) & 1); }

  uint8_t byte_;
  int bit_;
  bool sending_ = true;
  bool clock_low_ = false;
  bool data_pulled_ = false;
  bool acknowledged_ = false;
};

}  // namespace

TEST_CASE("a free bus is left alone") {
  StuckDevice idle(0xFF, 0);
  CHECK_FALSE(clear_bus(idle));
  CHECK(idle.clocks == 0);
}

TEST_CASE("whatever byte a device was cut off in, at whatever bit, the bus is free after a STOP") {
  for (int byte = 0; byte < 256; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      CAPTURE(byte);
      CAPTURE(bit);
      StuckDevice device(static_cast<uint8_t>(byte), bit);
      const bool held = !device.data_is_high();
      CHECK(clear_bus(device) == held);
      if (!held) continue;
      CHECK(device.data_is_high());
      CHECK(device.stops >= 1);
      CHECK(device.clocks <= kMostClearingClocks + 1);
      CHECK(device.waits >= 2 * device.clocks);
    }
  }
}

TEST_CASE("a line that stays low is given up after nine clocks and a STOP") {
  struct Shorted : StuckDevice {
    Shorted() : StuckDevice(0, 0) {}
    bool data_is_high() { return false; }
  } shorted;
  CHECK(clear_bus(shorted));
  CHECK(shorted.clocks == kMostClearingClocks + 1);
}
