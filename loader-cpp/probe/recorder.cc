#include "probe/recorder.h"

#include <unistd.h>

#include "loader/system_error.h"

namespace opjoule {
namespace {

constexpr size_t kEarlyEdgesMax = 4096;  // an hour of them

}  // namespace

Recorder::Recorder(std::string folder, SamplerSettings settings, Answers& answers)
    : folder_(std::move(folder)), answers_(answers), live_(settings.live) {
  settings.after_row = [this] { tell_failures(); };
  sampler_ = std::make_unique<Sampler>(std::move(settings));
}

Recorder::~Recorder() = default;

Status Recorder::files(const std::string& name) {
  const std::lock_guard one(files_mutex_);
  tell_failures();
  const std::string path = folder_ + "/" + name;
  const std::string events_path = path + ".events.jsonl";
  if (::access(events_path.c_str(), F_OK) == 0)
    return {StatusCode::kBadInput, "events file " + events_path + ": is there already"};
  std::unique_ptr<EventFile> events;
  if (Status status = EventFile::create(events_path, &events); !status.is_ok()) return status;
  if (Status status = sampler_->new_file(path + ".system.csv"); !status.is_ok()) {
    ::unlink(events_path.c_str());
    return status;
  }
  {
    const std::unique_lock alone(events_mutex_);
    const std::lock_guard early(early_mutex_);
    for (const SyncEdge& edge : early_edges_)
      events->sync_edge(edge.board_ns, edge.u_ns, edge.level);
    early_edges_.clear();
    std::swap(events_, events);
  }
  close_events(std::move(events));
  return Status::ok();
}

void Recorder::close_events(std::unique_ptr<EventFile> events) {
  if (events == nullptr) return;
  if (const Status status = events->close(); !status.is_ok())
    answers_.say_fault(status.message(), status.message());
  if (events->dropped() > 0)
    answers_.say_fault("dropped", std::to_string(events->dropped()) + " events were lost");
}

void Recorder::sync_edge(const SyncEdge& edge) {
  if (live_ != nullptr)
    live_->write("e " + std::to_string(edge.board_ns) + " " + std::to_string(edge.level) + "\n");
  const std::shared_lock lock(events_mutex_);
  if (events_ != nullptr) return events_->sync_edge(edge.board_ns, edge.u_ns, edge.level);
  const std::lock_guard early(early_mutex_);
  if (early_edges_.size() < kEarlyEdgesMax)
    early_edges_.push_back(edge);
  else
    answers_.say_fault("early edges", "sync edges are lost: no files were asked for in an hour");
}

void Recorder::signature_begins() { sampler_->signature(true); }

void Recorder::signature_ends(const LoadSignature& played) {
  sampler_->signature(false);
  const std::shared_lock lock(events_mutex_);
  if (events_ == nullptr) return;
  for (const LoadChange& change : played.changes)
    events_->load_change(change.board_ns, change.u_ns, change.level);
}

Status Recorder::take(const Mark& mark) {
  const bool is_phase = mark.kind == MarkKind::kPhaseBegin || mark.kind == MarkKind::kPhaseEnd;
  const char* phase = mark.kind == MarkKind::kPhaseBegin ? "phase-begin" : "phase-end";
  if (is_phase) answers_.say({{"mark", phase}, {"name", mark.name}, {"board_ns", mark.start_ns}});
  if (mark.kind == MarkKind::kWatch || mark.kind == MarkKind::kRun)
    return sampler_->watch(mark.pid);
  if (mark.kind == MarkKind::kUnwatch) sampler_->unwatch(mark.pid);
  if (mark.kind == MarkKind::kUnwatch || mark.kind == MarkKind::kSync) return Status::ok();
  const std::shared_lock lock(events_mutex_);
  if (events_ == nullptr)
    return {StatusCode::kBadInput, "no files were asked for yet: it is not written down"};
  if (is_phase)
    events_->moment(phase, mark.start_ns, mark.name);
  else
    events_->activity(mark.kind == MarkKind::kOperation ? "operation" : mark.name, mark.start_ns,
                      mark.end_ns, mark.detail);
  return Status::ok();
}

void Recorder::tell_failures() {
  if (const Status status = sampler_->status(); !status.is_ok())
    answers_.say_fault(status.message(), status.message());
  if (sampler_->bytes_denied())
    answers_.say_fault("bytes denied",
                       "bytes read and written of a watched process cannot be seen: it belongs to "
                       "another user (run the probe as that user or as root)");
  if (live_ != nullptr && live_->left_out() > 0)
    answers_.say_fault("live", "the reader of the live feed is too slow: lines are left out");
  const std::shared_lock lock(events_mutex_);
  if (events_ == nullptr) return;
  if (const Status status = events_->status(); !status.is_ok())
    answers_.say_fault(status.message(), status.message());
}

void Recorder::stop() {
  sampler_->stop();
  tell_failures();
  const std::unique_lock alone(events_mutex_);
  close_events(std::move(events_));
}

}  // namespace opjoule
