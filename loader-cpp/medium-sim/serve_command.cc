// `medium-sim serve`: one thread that receives the trapped calls, lets the medium's time pass, and
// answers when it is done; docs/decisions/0013-a-medium-that-pushes-back.md.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "board/clock.h"
#include "board/exit_code.h"
#include "board/output.h"
#include "board/stop_signal.h"
#include "medium-sim/commands.h"
#include "medium-sim/dirty_pages.h"
#include "medium-sim/filter.h"
#include "medium-sim/medium_files.h"
#include "medium-sim/page_cache.h"
#include "medium-sim/runs.h"
#include "medium-sim/sync_calls.h"

namespace opjoule {
namespace {

constexpr int64_t kTickNs = 10'000'000;
constexpr int64_t kUrgentTickNs = 1'000'000;
constexpr int64_t kSayNs = 1'000'000'000;  // between two looks for something to say
constexpr int64_t kSpinNs = 80'000;        // waits end this late on a computer that sleeps deeply

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return out + "\"";
}

void print_fault(const std::string& text) { print_line("{\"fault\":" + quoted(text) + "}"); }

// Empty where the kernel allows a filter with a listener; tried in a process of its own, since a
// filter stays.
std::string why_not_slowed() {
  int words[2];
  if (::pipe(words) != 0) return "no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    int listener = -1;
    const Status status = install_filter(synced_descriptors(), &listener);
    const std::string& message = status.message();
    static_cast<void>(!::write(words[1], message.data(), message.size()));
    ::_exit(0);
  }
  ::close(words[1]);
  char text[256];
  const ssize_t got = ::read(words[0], text, sizeof text);
  ::close(words[0]);
  ::waitpid(pid, nullptr, 0);
  return {text, static_cast<size_t>(std::max<ssize_t>(got, 0))};
}

class MediumServer {
 public:
  MediumServer(const MediumServeOptions& options, Guardian* guardian)
      : queue_(options.medium, board_ns()),
        cache_(options.files, options.cache_bytes),
        pages_(&queue_, &cache_, guardian, std::string(kMediumVariable) + "=" + options.socket),
        calls_(&queue_, guardian,
               [this](int64_t at_ns, pid_t tid) {
                 pages_.meet(tid);
                 pages_.count(at_ns, calls_.take_written_through());
               }),
        runs_(guardian, [this](pid_t pid) { pages_.watch(pid); }, print_fault) {}

  Status open(const MediumServeOptions& options) {
    if (Status status = runs_.open(options.socket); !status.is_ok()) return status;
    return MediumFiles::open(options.state, options.live, &files_);
  }

  // Until stdin ends or a signal comes.
  void serve() {
    while (!stop_requested() && !stdin_ended_) {
      const int64_t now_ns = board_ns();
      if (now_ns >= next_look_ns_) look(now_ns);
      calls_.answer_due(now_ns);
      wait_and_receive();
    }
    end();
  }

 private:
  void look(int64_t now_ns) {
    pages_.look(calls_.take_written_through());
    if (now_ns >= next_tell_ns_) {
      const int64_t told_ns = board_ns();
      files_->write(told_ns, &queue_);
      next_tell_ns_ = told_ns + kTickNs;
    }
    if (now_ns >= next_say_ns_) {
      tell_real_disk();
      tell_cache();
      tell_faults();
      next_say_ns_ = now_ns + kSayNs;
    }
    next_look_ns_ = board_ns() + (pages_.urgent() ? kUrgentTickNs : kTickNs);
  }

  [[nodiscard]] int64_t wait_ns() const {
    const int64_t now_ns = board_ns();
    int64_t until_ns = next_look_ns_;
    if (const auto due_ns = calls_.next_due_ns()) until_ns = std::min(until_ns, *due_ns - kSpinNs);
    return std::max<int64_t>(until_ns - now_ns, 0);
  }

  void wait_and_receive() {
    fds_ = {{STDIN_FILENO, POLLIN, 0}, {calls_.ready_fd(), POLLIN, 0}};
    runs_.append_to(&fds_);
    const int64_t wait = wait_ns();
    const timespec timeout{static_cast<time_t>(wait / kNsPerSecond),
                           static_cast<long>(wait % kNsPerSecond)};
    if (::ppoll(fds_.data(), fds_.size(), &timeout, nullptr) <= 0) return;
    if (fds_[0].revents != 0) hear_stdin();
    runs_.attend(
        fds_.data() + 2, [this](Programs* programs) { calls_.receive(programs); },
        [this](Programs* programs) { calls_.forget(programs); });
  }

  // Each line `drop` drops the page cache.
  void hear_stdin() {
    char text[256];
    const ssize_t got = ::read(STDIN_FILENO, text, sizeof text);
    stdin_ended_ = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
    for (ssize_t i = 0; i < got; ++i) {
      if (text[i] != '\n') {
        heard_ += text[i];
        continue;
      }
      if (std::exchange(heard_, {}) == "drop") drop_cache();
    }
  }

  void drop_cache() {
    const CachedBytes bytes = cache_.drop();
    print_line("{\"dropped\":{\"cached_bytes\":" + std::to_string(bytes.before) +
               ",\"left_bytes\":" + std::to_string(bytes.left) + "}}");
  }

  void end() {
    pages_.release_all();
    calls_.release_all();
    files_->write(board_ns(), &queue_);
    tell_real_disk();
    tell_cache();
    tell_faults();
  }

  // Each once, as soon as it is so: at the end nobody may be listening any more.
  void tell_faults() {
    if (!told_stopped_ && pages_.holds().held_by_signal() > 0) {
      told_stopped_ = true;
      print_fault(
          "the kernel forbids to hold single threads (ptrace), so processes are stopped with "
          "SIGSTOP");
    }
    if (!told_left_out_ && files_->left_out() > 0) {
      told_left_out_ = true;
      print_fault("the reader of the live FIFO is too slow: writes are left out");
    }
  }

  void tell_cache() {
    const uint64_t bytes = cache_.beyond_bytes();
    if (bytes == std::exchange(told_beyond_bytes_, bytes)) return;
    print_line("{\"cache\":{\"beyond_bytes\":" + std::to_string(bytes) + "}}");
  }

  // Nothing where no sync has ended since the last line.
  void tell_real_disk() {
    const RealDisk& disk = calls_.real_disk();
    if (disk.syncs == told_syncs_) return;
    told_syncs_ = disk.syncs;
    print_line("{\"disk\":{\"syncs\":" + std::to_string(disk.syncs) + ",\"slower\":" +
               std::to_string(disk.slower) + ",\"model_ns\":" + std::to_string(disk.model_ns) +
               ",\"excess_ns\":" + std::to_string(disk.excess_ns) + "}}");
  }

  MediumQueue queue_;
  PageCache cache_;
  DirtyPages pages_;
  SyncCalls calls_;
  Runs runs_;
  std::unique_ptr<MediumFiles> files_;
  std::vector<pollfd> fds_;
  int64_t next_look_ns_ = 0;
  int64_t next_tell_ns_ = 0;
  int64_t next_say_ns_ = 0;
  uint64_t told_syncs_ = 0;
  bool told_stopped_ = false;
  bool told_left_out_ = false;
  uint64_t told_beyond_bytes_ = 0;
  std::string heard_;
  bool stdin_ended_ = false;
};

}  // namespace

int medium_serve_command(const MediumServeOptions& options) {
  const std::string why = why_not_slowed();
  Guardian guardian;
  if (const Status status = Guardian::start(&guardian); !status.is_ok())
    return report_failure(status, kMediumSim);
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
  MediumServer server(options, &guardian);
  if (const Status status = server.open(options); !status.is_ok())
    return report_failure(status, kMediumSim);
  print_line("{\"medium_sim\":\"" OPJOULE_VERSION "\",\"board_ns\":" + std::to_string(board_ns()) +
             ",\"slows\":" + (why.empty() ? "true" : "false") + ",\"why\":" + quoted(why) + "}");
  server.serve();
  return kExitOk;
}

}  // namespace opjoule
