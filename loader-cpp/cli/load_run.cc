// `loader load` and `loader run`: open, phase, settle, the runs that follow, close, summary.
#include <atomic>
#include <memory>
#include <optional>

#include "board/clock.h"
#include "board/event_file.h"
#include "board/exit_code.h"
#include "board/output.h"
#include "board/proc_file.h"
#include "board/settle.h"
#include "board/stop_signal.h"
#include "cli/commands.h"
#include "cli/following_runs.h"
#include "cli/phase_lines.h"
#include "cli/progress.h"
#include "cli/properties_check.h"
#include "cli/summary.h"
#include "cli/trial_open.h"
#include "workload/phase.h"
#include "workload/preflight.h"
#include "workload/trace.h"

namespace opjoule {
namespace {

constexpr double kSettleSliceS = 0.5;

class PhaseCommand {
 public:
  PhaseCommand(const CommandOptions& options, Phase phase)
      : options_(options), phase_(phase), name_(phase == Phase::kLoad ? "load" : "run") {}

  int execute() {
    Status status = prepare();
    if (status.is_ok() && options_.check)
      return check_engine(*engine_, properties_, settings_, !options_.trace.empty());
    if (status.is_ok()) status = open();
    if (status.is_ok()) status = look_inside();
    if (!status.is_ok()) return report_failure(status);
    settle_opening();
    do {
      run();
      judge_operations();
      judge_end();
      settle();
      verify_count();
    } while (failure_.is_ok() && !stop_requested() && begin_next_run());
    close();
    return finish();
  }

 private:
  Status prepare();
  // Prints the summary of the phase that has ended; false if none follows.
  bool begin_next_run();
  void note_settings();
  void complete_summary();
  Status open();
  std::unique_ptr<OperationSource> make_source(uint32_t thread, Client* client);
  [[nodiscard]] uint64_t amount() const;
  Status look_inside();
  void verify_count();
  void run();
  void settle_opening();
  void settle();
  bool settle_engine(double limit_s);
  void close();
  Status write_back_rest(double limit_s, const std::string& what, bool* written_back);
  void judge_end();
  void judge_operations();
  int finish();
  void keep(Status status) {
    if (failure_.is_ok()) failure_ = std::move(status);
  }
  // The first failure to write the events, which raises the stop flag.
  [[nodiscard]] Status events_status() const {
    return events_ == nullptr ? Status::ok() : events_->status();
  }
  [[nodiscard]] uint64_t operations() const {
    const PhaseRunner* runner = runner_.load();
    return runner == nullptr ? 0 : runner->operations();
  }

  const CommandOptions& options_;
  Phase phase_;
  std::string name_;
  Properties properties_;
  const Engine* engine_ = nullptr;
  WorkloadSettings settings_;
  std::deque<FollowingRun> following_;
  bool settle_asked_ = true;
  double settle_limit_s_ = 60;

  PhaseLines lines_{[this] { return operations(); }};
  std::unique_ptr<EventFile> events_;  // outlives the engine
  std::unique_ptr<OperationLog> log_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<KeySpace> key_space_;
  std::unique_ptr<TraceFile> trace_;
  std::unique_ptr<PhaseRunner> runner_owner_;
  std::atomic<const PhaseRunner*> runner_{nullptr};  // the progress thread looks through it
  Summary summary_;
  Status failure_;
  bool operations_failed_ = false;  // for a reason that has no exit code of its own
};

Status PhaseCommand::prepare() {
  Status status = gather_properties(options_, &properties_);
  if (status.is_ok()) status = require_engine(options_.database, &engine_);
  if (status.is_ok()) status = check_properties(properties_, *engine_);
  if (status.is_ok())
    status = WorkloadSettings::from(properties_, options_.trace.empty() ? phase_ : Phase::kReplay,
                                    options_.threads, &settings_);
  if (status.is_ok()) status = check_memory(settings_);
  if (status.is_ok()) status = prepare_following(options_, properties_, *engine_, &following_);
  std::string settle = "auto";
  if (status.is_ok()) status = properties_.choice("settle", {"auto", "none"}, &settle);
  if (status.is_ok()) status = properties_.real("settle.limit_s", 0, 86400, &settle_limit_s_);
  settle_asked_ = settle == "auto";
  if (status.is_ok() && options_.resume && !options_.trace.empty())
    status = {StatusCode::kBadInput,
              "--resume with --trace: a trace's operations are done as they come; leave one out"};
  if (status.is_ok() && options_.path.empty() && engine_->name != "null")
    status = {StatusCode::kBadInput, "--path: missing; name the folder the database is to live in"};
  return status;
}

Status PhaseCommand::open() {
  Status status;
  if (!options_.events.empty()) status = EventFile::create(options_.events, &events_);
  if (status.is_ok() && !options_.operation_log.empty())
    status = OperationLog::create(options_.operation_log, &log_);
  if (status.is_ok() && !options_.trace.empty())
    status = TraceFile::open(options_.trace, settings_, phase_ == Phase::kLoad, &trace_);
  if (!status.is_ok()) return status;
  lines_.print_now("open", ",\"database\":\"" + engine_->name + "\"");
  OpenRequest request;
  request.path = options_.path;
  request.create = phase_ == Phase::kLoad;
  request.resume = options_.resume;
  request.read_only = phase_ == Phase::kRun && options_.trace.empty() && following_.empty() &&
                      settings_.only_reads();
  request.field_count = settings_.field_count;
  request.threads = static_cast<int>(settings_.threads);
  request.properties = &properties_;
  request.events = events_.get();
  database_ = engine_->open(request, status);
  return status;
}

std::unique_ptr<OperationSource> PhaseCommand::make_source(uint32_t thread, Client* client) {
  if (trace_ != nullptr) return std::make_unique<TraceSource>(*trace_);
  if (phase_ == Phase::kLoad) return std::make_unique<LoadGenerator>(*key_space_, thread, client);
  return run_source(*key_space_, thread);
}

// Operations to do; 0 where the trace or the time ends the phase.
uint64_t PhaseCommand::amount() const {
  if (trace_ != nullptr || options_.resume) return 0;
  return phase_ == Phase::kLoad ? settings_.insert_count : settings_.operation_count;
}

// Checks that this is the database into which the workload was loaded, finds where an interrupted
// load goes on, and waits for the first operation of a trace.
Status PhaseCommand::look_inside() {
  key_space_ = std::make_unique<KeySpace>(settings_);
  if (trace_ != nullptr) return trace_->await_operation();
  if (phase_ == Phase::kLoad && !options_.resume) return Status::ok();
  Status status;
  const std::unique_ptr<Client> client = database_->client(status);
  if (client == nullptr) return status;
  if (phase_ == Phase::kRun) {
    status = check_loaded(*client, settings_);
    const bool keeps = engine_->name != "null";
    return status.is_ok() && keeps ? check_not_inserted(*client, settings_) : status;
  }
  ResumePoint point;
  status = database_->count(&summary_.rows_before);
  if (status.is_ok()) status = find_resume_point(*client, settings_, summary_.rows_before, &point);
  key_space_->next_load_number = point.first_number;
  key_space_->check_end = point.check_end;
  return status;
}

// After a resumed load there must be as many rows as before and inserted together; all rows of the
// workload, if the load makes all.
void PhaseCommand::verify_count() {
  if (!options_.resume || stop_requested() || !failure_.is_ok()) return;
  keep(database_->count(&summary_.rows_after));
  const uint64_t inserted =
      summary_.results.by_kind[static_cast<int>(OperationKind::kInsert)].succeeded;
  const bool loads_everything =
      settings_.insert_start == 0 && settings_.insert_count == settings_.row_count;
  const uint64_t expected =
      loads_everything ? settings_.row_count : summary_.rows_before + inserted;
  if (failure_.is_ok() && engine_->name != "null" && summary_.rows_after != expected)
    failure_ = {StatusCode::kCorrupt, "the resumed load ended with " +
                                          std::to_string(summary_.rows_after) + " records where " +
                                          std::to_string(expected) +
                                          " were expected; load anew, without --resume"};
}

void PhaseCommand::run() {
  PhaseRequest request;
  request.settings = &settings_;
  request.phase = phase_;
  request.database = database_.get();
  request.log = log_.get();
  request.operations = amount();
  request.source = [this](uint32_t thread, Client* client) { return make_source(thread, client); };
  double cpu_start_s = 0;
  request.on_start = [this, &cpu_start_s] {
    cpu_start_s = process_cpu_s();
    return board_ns();
  };
  request.on_started = [this](int64_t start_board_ns) {
    print_line("{\"phase\":\"" + name_ + "-start\",\"board_ns\":" + std::to_string(start_board_ns) +
               ",\"operations\":0}");
  };
  runner_owner_ = std::make_unique<PhaseRunner>(request);
  runner_.store(runner_owner_.get());
  std::optional<ProgressLines> progress;
  if (options_.progress) progress.emplace([this] { return operations(); }, request.operations);
  const PhaseOutcome outcome = runner_owner_->run();
  summary_.cpu_s = process_cpu_s() - cpu_start_s;
  progress.reset();
  lines_.print(name_ + "-end", outcome.end_board_ns);
  summary_.results = outcome.results;
  if (trace_ != nullptr) summary_.results.skipped_lines = trace_->skipped_lines();
  const bool all_loaded = phase_ == Phase::kLoad && trace_ == nullptr &&
                          key_space_->next_load_number.load() >= key_space_->load_end;
  summary_.out_of_time = outcome.out_of_time && !all_loaded;
  summary_.duration_s = static_cast<double>(outcome.end_board_ns - outcome.start_board_ns) * 1e-9;
  summary_.memory_at_end = process_memory();
  keep(outcome.results.fatal);
  keep(events_status());
  if (trace_ != nullptr && summary_.results.operations() == 0 && !stop_requested())
    keep({StatusCode::kBadInput,
          "trace " + options_.trace + ": ended without an operation; did what makes it fail?"});
}

// Work that opening the database began, as merging the files that an earlier run has left, ends
// before the first operation: it belongs to no operation of this run. Also with settle=none, which
// is about the work of this run.
void PhaseCommand::settle_opening() {
  if (phase_ != Phase::kRun || stop_requested()) return;
  const int64_t start_ns = board_ns();
  const bool engine_settled = settle_engine(settle_limit_s_) || !database_->can_settle();
  bool written_back = true;
  const double left_s = settle_limit_s_ - static_cast<double>(board_ns() - start_ns) * 1e-9;
  keep(write_back_rest(left_s, "syncfs after open", &written_back));
  summary_.opening_settled = engine_settled && written_back;
}

bool PhaseCommand::begin_next_run() {
  if (following_.empty()) return false;
  stop_flag().store(false);  // time may have raised it
  if (stop_requested()) return false;
  note_settings();
  summary_.database_bytes = database_->size_on_disk();
  complete_summary();
  print_line(summary_json(summary_));
  runner_.store(nullptr);
  summary_ = {};
  phase_ = Phase::kRun, name_ = "run";
  properties_ = std::move(following_.front().properties);
  settings_ = std::move(following_.front().settings);
  following_.pop_front();
  key_space_ = std::make_unique<KeySpace>(settings_);
  return true;
}

// In slices, so that a signal or a failure to write the events ends the wait.
bool PhaseCommand::settle_engine(double limit_s) {
  bool settled = false;
  const int64_t start_ns = board_ns();
  for (double left = limit_s; !settled && left > 0 && !stop_requested() &&
                              events_status().is_ok() && database_->can_settle();) {
    if (Status status = database_->settle(std::min(left, kSettleSliceS), &settled);
        !status.is_ok()) {
      keep(std::move(status));
      break;
    }
    left = limit_s - static_cast<double>(board_ns() - start_ns) * 1e-9;
  }
  return settled;
}

void PhaseCommand::settle() {
  summary_.settle_asked = settle_asked_ && !stop_requested();
  if (!summary_.settle_asked) return;
  lines_.print_now("settle-start");
  const int64_t start_ns = board_ns();
  // Between two phases of one process an engine keeps in memory what it has there: to have it
  // written would change what the next phase finds.
  const bool last = following_.empty() || !failure_.is_ok();
  const bool engine_settled = !last || settle_engine(settle_limit_s_);
  bool written_back = true;
  const double left_s = settle_limit_s_ - static_cast<double>(board_ns() - start_ns) * 1e-9;
  keep(write_back_rest(left_s, "syncfs", &written_back));
  summary_.settled = engine_settled && written_back;
  summary_.settle_s = static_cast<double>(board_ns() - start_ns) * 1e-9;
  lines_.print_now("settle-end",
                   std::string(",\"settled\":") + (summary_.settled ? "true" : "false"));
}

// syncfs() of the file system that the database is on, unless it is on a server.
Status PhaseCommand::write_back_rest(double limit_s, const std::string& what, bool* written_back) {
  const bool is_server = options_.path.find("://") != std::string::npos;
  if (options_.path.empty() || is_server || engine_->name == "null") return Status::ok();
  return timed(events_.get(), EventKind::kSync, what,
               [&] { return write_back(options_.path, std::max(limit_s, 0.0), written_back); });
}

void PhaseCommand::note_settings() {
  summary_.engine_settings = database_->settings();
  summary_.engine_settings.try_emplace("updates",
                                       settings_.blind_updates ? "blind" : "read-merge-write");
  if (settings_.blind_removes) summary_.engine_settings.try_emplace("removes", "blind");
}

// What an engine writes while it closes is part of its work, and is brought to the medium before
// `closed`: after that the loader writes only its last lines.
void PhaseCommand::close() {
  note_settings();
  lines_.print_now("close");
  keep(database_->close());
  bool written_back = true;
  if (summary_.settle_asked && !stop_requested()) {
    keep(write_back_rest(settle_limit_s_ - summary_.settle_s, "syncfs after close", &written_back));
    summary_.settled = summary_.settled && written_back;
  }
  // An open engine holds space that it gives back, or has yet to write what it keeps in memory.
  summary_.database_bytes = database_->size_on_disk();
  lines_.print_now("closed");
  if (events_ != nullptr) keep(events_->close());
}

// A load that is not complete has failed: a run on part of the rows would be another workload.
void PhaseCommand::judge_end() {
  if (phase_ != Phase::kLoad || !summary_.out_of_time || !failure_.is_ok() || stop_requested())
    return;
  failure_ = {
      StatusCode::kIncomplete,
      "the load was cut short by maxexecutiontime after " +
          std::to_string(summary_.results.operations()) +
          (trace_ != nullptr ? std::string(" records")
                             : " of " + std::to_string(settings_.insert_count) + " records") +
          "; finish it with load --resume, or raise maxexecutiontime"};
}

// Operations that did not end as the workload expects make the command fail. A failure at closing,
// which often repeats theirs, does not replace this one.
void PhaseCommand::judge_operations() {
  const bool removes =
      summary_.results.by_kind[static_cast<int>(OperationKind::kRemove)].succeeded > 0;
  summary_.not_found_expected = removes && (!settings_.put_back || settings_.threads > 1) &&
                                settings_.distribution != RequestDistribution::kSequential;
  if (!failure_.is_ok()) return;
  failure_ = summary_.results.failure(summary_.not_found_expected);
  const Status& first = summary_.results.first_failure;
  operations_failed_ = !failure_.is_ok() && first.code() != StatusCode::kNoSpace &&
                       first.code() != StatusCode::kCorrupt &&
                       first.code() != StatusCode::kUnsupported;
}

void PhaseCommand::complete_summary() {
  summary_.command = name_;
  summary_.interrupted = stop_requested();
  summary_.engine = engine_->name;
  summary_.engine_version = engine_->version;
  summary_.properties = &properties_;
  summary_.settings = &settings_;
  summary_.ignored = ignored_keys(properties_, *engine_, trace_ != nullptr);
  summary_.peak_memory_bytes = process_memory().peak_resident_bytes;
  summary_.dropped_events = events_ == nullptr ? 0 : events_->dropped();
  summary_.replayed = trace_ != nullptr;
  if (key_space_->mix_blocks) summary_.mix_blocks = key_space_->mix_blocks->count();
  summary_.resumed = options_.resume;
  summary_.failure = failure_.message();
}

int PhaseCommand::finish() {
  complete_summary();
  print_line(summary_json(summary_));
  if (!failure_.is_ok()) {
    const int code = report_failure(failure_);
    return operations_failed_ ? static_cast<int>(kExitOperationsFailed) : code;
  }
  return summary_.interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace

int run_phase_command(const CommandOptions& options, Phase phase) {
  return PhaseCommand(options, phase).execute();
}

}  // namespace opjoule
