#include "cli/instruments.h"

#include "board/clock.h"
#include "board/output.h"

namespace opjoule {

Status Instruments::start(const CommandOptions& options, uint64_t seed,
                          std::function<uint64_t()> operations) {
  operations_ = std::move(operations);
  if (!options.events.empty())
    if (Status status = EventFile::create(options.events, &events_); !status.is_ok()) return status;
  if (!options.sync.empty()) {
    std::unique_ptr<SyncCarrier> carrier;
    if (Status status = SyncCarrier::open(options.sync, &carrier); !status.is_ok()) return status;
    const auto record = [events = events_.get()](const SyncEdge& edge) {
      if (events != nullptr) events->sync_edge(edge.board_ns, edge.u_ns, edge.level);
    };
    sync_ = std::make_unique<SyncLine>(
        std::move(carrier), record, [](const Status&) {}, seed);
  }
  if (options.system.empty()) return Status::ok();
  return SystemSampler::start(options.system, options.system_period_ms * 1e-3, options.path,
                              operations_, &system_);
}

int64_t Instruments::mark() {
  if (sync_ != nullptr) sync_->toggle();
  return board_ns();
}

void Instruments::print_phase(const std::string& phase, int64_t phase_board_ns,
                              const std::string& more) {
  print_line("{\"phase\":\"" + phase + "\",\"board_ns\":" + std::to_string(phase_board_ns) +
             ",\"operations\":" + std::to_string(operations_()) + more + "}");
}

void Instruments::phase(const std::string& phase, const std::string& more) {
  print_phase(phase, mark(), more);
}

Status Instruments::status() const {
  Status status;
  if (system_ != nullptr) status = system_->status();
  if (events_ != nullptr && status.is_ok()) status = events_->status();
  return status;
}

Status Instruments::stop() {
  Status status;
  const auto keep = [&status](Status next) {
    if (status.is_ok()) status = std::move(next);
  };
  if (sync_ != nullptr) {
    keep(sync_->stop());
    sync_edges_ = sync_->edges();
  }
  if (system_ != nullptr) keep(system_->stop());
  if (events_ != nullptr) {
    keep(events_->close());
    dropped_events_ = events_->dropped();
  }
  return status;
}

}  // namespace opjoule
