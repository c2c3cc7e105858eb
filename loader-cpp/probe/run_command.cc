// `probe run`: one command on the board, which is ended when its lifeline ends.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <memory>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/input_file.h"
#include "board/output.h"
#include "board/write_all.h"
#include "loader/system_error.h"
#include "probe/command_cgroup.h"
#include "probe/command_process.h"
#include "probe/commands.h"
#include "probe/marks_client.h"

namespace opjoule {
namespace {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();
constexpr double kSyncLimitS = 10;

class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {}
  ~Run() {
    if (signals_ >= 0) ::close(signals_);
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Everything up to the command's first instruction.
  Status start();
  // Until the command has ended; its exit status.
  int wait();

 private:
  Status make_folder();
  Status connect();
  Status write_file(const std::string& name, const std::string& text) const;
  Status tell(const std::string& word);
  Status mark_phase(const std::string& end);
  bool hear_lifeline();
  void stop_command();
  [[nodiscard]] int64_t next_deadline_ns() const;

  const RunOptions& options_;
  std::string folder_;  // DIR/TAG
  std::string socket_;
  int signals_ = -1;
  std::unique_ptr<MarksClient> marks_;
  CommandProcess command_;
  CommandCgroup cgroup_;
  bool lifeline_open_ = true;
  int64_t silent_at_ns_ = kNoDeadline;
  int64_t kill_at_ns_ = kNoDeadline;
};

Status Run::write_file(const std::string& name, const std::string& text) const {
  const std::string path = folder_ + "/" + name;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = fd >= 0 && write_all(fd, text + "\n");
  Status status = written ? Status::ok() : system_error(path + ": cannot be written");
  if (fd >= 0) ::close(fd);
  return status;
}

Status Run::make_folder() {
  if (options_.tag.empty() || options_.tag == "." || options_.tag == ".." ||
      options_.tag.find('/') != std::string::npos)
    return {StatusCode::kBadInput, "--tag " + options_.tag + ": expected a name of one folder"};
  folder_ = options_.folder + "/" + options_.tag;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return {StatusCode::kBadInput, folder_ + ": cannot be made: " + error.message()};
  if (std::filesystem::exists(folder_ + "/pid", error))
    return {StatusCode::kBadInput, "--tag " + options_.tag + ": a command of this tag has run in " +
                                       options_.folder + " already; give another"};
  return Status::ok();
}

// Where --serve does not say otherwise nobody need serve the folder.
Status Run::connect() {
  socket_ = options_.marks.empty() ? options_.folder + "/marks" : options_.marks;
  std::error_code error;
  if (options_.marks.empty() && !std::filesystem::exists(socket_, error)) {
    socket_.clear();
    return Status::ok();
  }
  socket_ = std::filesystem::absolute(socket_, error);
  return MarksClient::connect(socket_, &marks_);
}

// "run PID" or "unwatch PID"; waits until it was taken.
Status Run::tell(const std::string& word) {
  if (!marks_) return Status::ok();
  uint64_t taken = 0;
  Status status = marks_->send(word + " " + std::to_string(command_.pid()) + "\n");
  return status.is_ok() ? marks_->sync(kSyncLimitS, &taken) : status;
}

// "phase begin" or "phase end" of --phase, stamped now; waits until it was taken.
Status Run::mark_phase(const std::string& end) {
  if (!marks_ || options_.phase.empty()) return Status::ok();
  uint64_t taken = 0;
  const std::string stamp = std::to_string(board_ns());
  Status status = marks_->send("phase " + end + " " + options_.phase + " " + stamp + "\n");
  return status.is_ok() ? marks_->sync(kSyncLimitS, &taken) : status;
}

Status Run::start() {
  CommandSettings settings;
  settings.command = options_.command;
  settings.pinned = !options_.pin.empty();
  if (settings.pinned)
    if (Status status = parse_processors(options_.pin, &settings.processors); !status.is_ok())
      return status;
  if (Status status = make_folder(); !status.is_ok()) return status;
  if (Status status = connect(); !status.is_ok()) return status;
  std::string boot_id;
  if (Status status = read_input("", "/proc/sys/kernel/random/boot_id", 4096, &boot_id);
      !status.is_ok())
    return status;
  boot_id.resize(boot_id.find_last_not_of('\n') + 1);
  if (marks_) settings.environment.emplace_back("OPJOULE_MARKS", socket_);
  std::error_code error;
  settings.environment.emplace_back("OPJOULE_PROBE",
                                    std::filesystem::read_symlink("/proc/self/exe", error));
  // Ctrl-C in a terminal or a closed connection: the lifeline shows it.
  for (const int number : {SIGHUP, SIGINT, SIGPIPE}) ::signal(number, SIG_IGN);
  sigset_t heard;
  sigemptyset(&heard);
  for (const int number : {SIGTERM, SIGCHLD}) sigaddset(&heard, number);
  ::sigprocmask(SIG_BLOCK, &heard, &settings.signals);
  signals_ = ::signalfd(-1, &heard, SFD_CLOEXEC);
  if (Status status = command_.start(settings); !status.is_ok()) return status;
  cgroup_.make(command_.pid());
  if (Status status = write_file("pid", std::to_string(command_.pid()) + " " + boot_id);
      !status.is_ok())
    return status;
  if (Status status = tell("run"); !status.is_ok()) return status;
  if (Status status = mark_phase("begin"); !status.is_ok()) return status;
  command_.begin();
  return Status::ok();
}

// False where the lifeline has ended.
bool Run::hear_lifeline() {
  char beats[256];
  const ssize_t count = ::read(STDIN_FILENO, beats, sizeof beats);
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

void Run::stop_command() {
  lifeline_open_ = false;
  silent_at_ns_ = kNoDeadline;
  if (kill_at_ns_ != kNoDeadline) return;
  kill_at_ns_ = board_ns() + static_cast<int64_t>(options_.kill_after_s * 1e9);
  command_.terminate();
}

int64_t Run::next_deadline_ns() const { return std::min(silent_at_ns_, kill_at_ns_); }

int Run::wait() {
  const bool has_lifeline = options_.silence_s > 0;
  const auto silence_ns = static_cast<int64_t>(options_.silence_s * 1e9);
  lifeline_open_ = has_lifeline;
  if (has_lifeline) silent_at_ns_ = board_ns() + silence_ns;
  while (!command_.ended()) {
    pollfd polled[] = {{signals_, POLLIN, 0}, {lifeline_open_ ? STDIN_FILENO : -1, POLLIN, 0}};
    const int64_t left_ns =
        next_deadline_ns() == kNoDeadline ? -1 : next_deadline_ns() - board_ns();
    const int left_ms = next_deadline_ns() == kNoDeadline
                            ? -1
                            : static_cast<int>(std::max<int64_t>(left_ns, 0) / 1'000'000 + 1);
    if (::poll(polled, 2, left_ms) < 0) continue;
    if (polled[0].revents != 0) {
      signalfd_siginfo signal{};
      if (::read(signals_, &signal, sizeof signal) == sizeof signal && signal.ssi_signo == SIGTERM)
        stop_command();
    }
    if (polled[1].revents != 0) {
      if (hear_lifeline())
        silent_at_ns_ = board_ns() + silence_ns;
      else
        stop_command();
    }
    if (board_ns() >= silent_at_ns_) stop_command();
    if (board_ns() >= kill_at_ns_) {
      command_.kill();
      cgroup_.kill();
      kill_at_ns_ = board_ns() + kNsPerSecond;
    }
  }
  if (const Status status = mark_phase("end"); !status.is_ok()) report_failure(status, kProbe);
  // What it has left behind would be in the idle power; the command is still there to be counted.
  command_.kill();
  cgroup_.kill();
  if (const Status status = tell("unwatch"); !status.is_ok()) report_failure(status, kProbe);
  const int status = command_.reap();
  if (const Status written = write_file("status", std::to_string(status)); !written.is_ok())
    report_failure(written, kProbe);
  return status;
}

}  // namespace

int run_command(const RunOptions& options) {
  Run run(options);
  if (const Status status = run.start(); !status.is_ok()) return report_failure(status, kProbe);
  return run.wait();
}

}  // namespace opjoule
