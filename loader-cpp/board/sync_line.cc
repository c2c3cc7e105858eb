#include "board/sync_line.h"

#include "board/clock.h"

namespace opjoule {

ToggleSchedule::ToggleSchedule(uint64_t seed, int64_t start_board_ns)
    : random_(seed ^ 0x73796e63 ^ static_cast<uint64_t>(start_board_ns), 0) {}

std::chrono::microseconds ToggleSchedule::next() {
  return std::chrono::microseconds(500'000 + random_.below(1'000'001));
}

SyncLine::SyncLine(std::unique_ptr<SyncCarrier> carrier,
                   std::function<void(const SyncEdge&)> on_edge,
                   std::function<void(const Status&)> on_failure, uint64_t seed)
    : carrier_(std::move(carrier)),
      on_edge_(std::move(on_edge)),
      on_failure_(std::move(on_failure)),
      schedule_(seed, board_ns()),
      level_(carrier_->found_level().value_or(0)),
      toggler_([this] { toggle_loop(); }) {}

SyncLine::~SyncLine() {
  if (toggler_.joinable()) static_cast<void>(stop());
}

void SyncLine::toggle() {
  const std::lock_guard lock(mutex_);
  toggle_locked();
}

void SyncLine::toggle_locked() {
  SyncEdge edge;
  Status status = carrier_->set(1 - level_, &edge);
  if (!status.is_ok()) {
    if (!status_.is_ok()) return;
    status_ = std::move(status);
    on_failure_(status_);
    return;
  }
  level_ = edge.level;
  ++edges_;
  on_edge_(edge);
}

void SyncLine::toggle_loop() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto until = std::chrono::steady_clock::now() + schedule_.next();
    if (!wake_.wait_until(lock, until, [this] { return stopping_; })) toggle_locked();
  }
}

Status SyncLine::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  toggler_.join();
  return status_;
}

uint64_t SyncLine::edges() const {
  const std::lock_guard lock(mutex_);
  return edges_;
}

}  // namespace opjoule
