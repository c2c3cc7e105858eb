#include "link/host_port.h"

namespace opjoule::rig {

void HostPort::push(std::uint8_t byte, double now_s) {
  last_ = byte;
  if (drop_rate_ > 0 && std::uniform_real_distribution<double>()(random_) < drop_rate_) {
    ++dropped_;
    return;
  }
  if (waiting_.empty()) first_s_ = now_s;
  waiting_.push_back(byte);
}

bool HostPort::hand_on(double now_s, const volatile int& stop, bool all) {
  if (waiting_.empty()) return false;
  if (!all && waiting_.size() < bunching_.bytes && now_s - first_s_ < bunching_.latency_s &&
      !(bunching_.at_frame_end && waiting_.back() == 0))
    return false;
  link_.send(waiting_, stop);
  waiting_.clear();
  return true;
}

}  // namespace opjoule::rig
