// `probe serve`: one process, one connection, for the whole of a measurement.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/live_feed.h"
#include "board/output.h"
#include "board/stop_signal.h"
#include "board/sync_line.h"
#include "loader/system_error.h"
#include "probe/answers.h"
#include "probe/commands.h"
#include "probe/marks_server.h"
#include "probe/recorder.h"
#include "probe/requests.h"
#include "probe/running_commands.h"

namespace opjoule {
namespace {

constexpr size_t kRequestBytesMax = 128 * 1024;
constexpr double kCommandLimitS = 5;

class Serve {
 public:
  explicit Serve(const ServeOptions& options) : options_(options) {}
  ~Serve() {
    if (lock_ >= 0) ::close(lock_);
  }
  Serve(const Serve&) = delete;
  Serve& operator=(const Serve&) = delete;

  Status open();
  // Runs until stdin ends, is silent for too long, or a stop is requested.
  void answer();
  void close();

 private:
  Status take_folder();
  [[nodiscard]] Status check_kernel_files() const;
  void take_lines(std::string_view arrived, int64_t received_ns);

  const ServeOptions& options_;
  int lock_ = -1;
  sigset_t waiting_signals_{};
  Answers answers_;
  RunningCommands running_;
  std::unique_ptr<LiveFeed> live_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<MarksServer> marks_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<SyncLine> sync_;
  std::string begun_;      // of a line whose end has not come
  bool skipping_ = false;  // the rest of a line that was too long
};

Status Serve::take_folder() {
  const std::string& folder = options_.folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  lock_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) return system_error("--dir " + folder + ": cannot be made or opened");
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return {StatusCode::kBadInput, "--dir " + folder + ": another probe serves it"};
  return Status::ok();
}

Status Serve::check_kernel_files() const {
  if (options_.kernel_files.empty()) return Status::ok();
  for (const char* name : {"/stat", "/meminfo"})
    if (const std::string path = options_.kernel_files + name; ::access(path.c_str(), R_OK) != 0)
      return system_error("--kernel-files: " + path + " cannot be read");
  return Status::ok();
}

Status Serve::open() {
  if (Status status = take_folder(); !status.is_ok()) return status;
  if (Status status = check_kernel_files(); !status.is_ok()) return status;
  if (!options_.live.empty())
    if (Status status = LiveFeed::open(options_.live, &live_); !status.is_ok()) return status;
  std::unique_ptr<SyncCarrier> carrier;
  if (!options_.sync.empty())
    if (Status status = SyncCarrier::open(options_.sync, &carrier); !status.is_ok()) return status;
  // Signals interrupt only the thread that waits for requests.
  sigset_t stops;
  sigemptyset(&stops);
  for (const int number : {SIGINT, SIGTERM}) sigaddset(&stops, number);
  pthread_sigmask(SIG_BLOCK, &stops, &waiting_signals_);
  SamplerSettings settings;
  settings.storage = options_.storage;
  settings.period_ns = int64_t{options_.period_ms} * 1'000'000;
  settings.processes_alone = options_.scope == kProcessesScope;
  settings.kernel_files = options_.kernel_files;
  settings.live = live_.get();
  settings.live_period_ns =
      int64_t{options_.live_period_ms == 0 ? options_.period_ms : options_.live_period_ms} *
      1'000'000;
  const std::string marks = options_.folder + "/marks";
  recorder_ = std::make_unique<Recorder>(options_.folder, std::move(settings), answers_);
  if (Status status = MarksServer::start(marks, *recorder_, running_, answers_, &marks_);
      !status.is_ok())
    return status;
  requests_ =
      std::make_unique<Requests>(options_.storage, options_.kernel_files, *recorder_, answers_);
  const std::optional<int> level = carrier ? carrier->found_level() : std::nullopt;
  answers_.say({{"probe", OPJOULE_VERSION},
                {"board_ns", board_ns()},
                {"marks", marks},
                {"level", level.has_value() ? Json(*level) : Json(nullptr)}});
  if (!carrier) return Status::ok();
  sync_ = std::make_unique<SyncLine>(
      std::move(carrier), [this](const SyncEdge& edge) { recorder_->sync_edge(edge); },
      [this](const Status& failure) { answers_.say_fault("sync line", failure.message()); },
      options_.seed);
  sync_->toggle();
  return Status::ok();
}

void Serve::take_lines(std::string_view arrived, int64_t received_ns) {
  for (size_t end = 0; (end = arrived.find('\n')) != std::string_view::npos;
       arrived.remove_prefix(end + 1)) {
    begun_.append(arrived.substr(0, end));
    if (skipping_)
      skipping_ = false;
    else if (begun_ == "clock")
      answers_.say_clock(received_ns);
    else if (!begun_.empty())  // an empty line is a heartbeat
      requests_->take(begun_);
    begun_.clear();
  }
  if (!skipping_) begun_.append(arrived);
  if (begun_.size() <= kRequestBytesMax) return;
  answers_.say_error(begun_.substr(0, 60), "the line has more than 131072 bytes");
  begun_.clear();
  skipping_ = true;
}

void Serve::answer() {
  const auto silence_ns = static_cast<int64_t>(options_.silence_s * 1e9);
  int64_t heard_ns = board_ns();
  char arrived[4096];
  while (!stop_requested()) {
    const int64_t left_ns = heard_ns + silence_ns - board_ns();
    if (left_ns <= 0) return;
    const timespec left{static_cast<time_t>(left_ns / kNsPerSecond),
                        static_cast<long>(left_ns % kNsPerSecond)};
    pollfd polled{STDIN_FILENO, POLLIN, 0};
    if (::ppoll(&polled, 1, &left, &waiting_signals_) <= 0) continue;
    const ssize_t count = ::read(STDIN_FILENO, arrived, sizeof arrived);
    heard_ns = board_ns();
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return;
    if (count > 0) take_lines({arrived, static_cast<size_t>(count)}, heard_ns);
  }
}

void Serve::close() {
  running_.stop(kCommandLimitS);
  request_stop();
  requests_->stop();
  if (sync_) static_cast<void>(sync_->stop());
  marks_->stop();
  recorder_->stop();
}

}  // namespace

int serve_command(const ServeOptions& options) {
  ::signal(SIGHUP, SIG_IGN);  // the end of stdin counts instead
  Serve serve(options);
  if (Status status = serve.open(); !status.is_ok()) return report_failure(status, kProbe);
  serve.answer();
  const bool interrupted = stop_requested();
  serve.close();
  return interrupted ? kExitInterrupted : kExitOk;
}

}  // namespace opjoule
