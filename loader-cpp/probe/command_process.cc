#include "probe/command_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "board/output.h"
#include "board/write_all.h"
#include "loader/system_error.h"
#include "probe/commands.h"

namespace opjoule {
namespace {

constexpr int kNotFound = 127;
constexpr int kNotStarted = 126;

[[noreturn]] void become(const CommandSettings& settings, int gate, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kNotStarted);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &settings.signals, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null > 0) ::dup2(null, STDIN_FILENO);
  if (null > STDIN_FILENO) ::close(null);
  for (const auto& [name, value] : settings.environment) ::setenv(name.c_str(), value.c_str(), 1);
  const std::string& name = settings.command.front();
  char go = 0;
  while (::read(gate, &go, 1) < 0 && errno == EINTR) {
  }
  if (go == 0) ::_exit(kNotStarted);
  if (settings.pinned &&
      ::sched_setaffinity(0, sizeof settings.processors, &settings.processors) != 0) {
    report_failure(system_error("--pin"), kProbe);
    ::_exit(kNotStarted);
  }
  std::vector<char*> arguments;
  for (const std::string& argument : settings.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int status = errno == ENOENT ? kNotFound : kNotStarted;
  report_failure(system_error(name + ": cannot be started"), kProbe);
  ::_exit(status);
}

}  // namespace

Status parse_processors(const std::string& text, cpu_set_t* out) {
  const Status bad{StatusCode::kBadInput,
                   "--pin " + text + ": expected processors as in 0 or 0,2-3"};
  CPU_ZERO(out);
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    unsigned first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc()) return bad;
    unsigned last = first;
    at = parsed.ptr;
    if (at < end && *at == '-') {
      parsed = std::from_chars(at + 1, end, last);
      if (parsed.ec != std::errc()) return bad;
      at = parsed.ptr;
    }
    if (last < first || last >= CPU_SETSIZE) return bad;
    for (unsigned number = first; number <= last; ++number) CPU_SET(number, out);
    if (at == end) break;
    if (*at++ != ',') return bad;
  }
  cpu_set_t there;
  cpu_set_t both;
  if (::sched_getaffinity(0, sizeof there, &there) != 0) return system_error("--pin " + text);
  CPU_AND(&both, out, &there);
  if (CPU_EQUAL(&both, out)) return Status::ok();
  return {StatusCode::kBadInput, "--pin " + text + ": this process may use " +
                                     std::to_string(CPU_COUNT(&there)) +
                                     " processors, and not all of these"};
}

Status CommandProcess::start(const CommandSettings& settings) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return system_error("command: no pipe");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) return system_error("command: cannot be started");
  if (pid_ == 0) {
    ::close(gate[1]);
    become(settings, gate[0], parent);
  }
  ::close(gate[0]);
  gate_ = gate[1];
  ::setpgid(pid_, pid_);  // parent and child both do this, whichever comes first
  return Status::ok();
}

CommandProcess::~CommandProcess() {
  if (gate_ >= 0) ::close(gate_);
}

void CommandProcess::begin() {
  write_all(gate_, "g");
  ::close(gate_);
  gate_ = -1;
}

bool CommandProcess::ended() const {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         about.si_pid == pid_;
}

int CommandProcess::reap() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void CommandProcess::terminate() const { ::kill(pid_, SIGTERM); }

void CommandProcess::kill() const { ::kill(-pid_, SIGKILL); }

}  // namespace opjoule
