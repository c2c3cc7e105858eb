#include "probe/marks_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "board/clock.h"
#include "board/output.h"
#include "board/write_all.h"
#include "loader/system_error.h"
#include "probe/mark.h"
#include "probe/marks_address.h"

namespace opjoule {
namespace {

constexpr size_t kConnectionsMax = 128;
constexpr int kLastParts = 64;
constexpr size_t kShownBytes = 60;  // of a refused line
constexpr const char* kTooLong = "the line has more than 4096 bytes";

}  // namespace

Status MarksServer::start(const std::string& path, Recorder& recorder, RunningCommands& running,
                          Answers& answers, std::unique_ptr<MarksServer>* out) {
  MarksAddress address;
  if (Status status = address.set(path); !status.is_ok()) return status;
  ::unlink(path.c_str());  // of a probe that was killed
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const mode_t before = ::umask(0177);
  const bool made =
      fd >= 0 && ::bind(fd, address.get(), MarksAddress::kSize) == 0 && ::listen(fd, 16) == 0;
  const int error_number = errno;
  ::umask(before);
  const int wake = ::eventfd(0, EFD_CLOEXEC);
  if (made && wake >= 0) {
    out->reset(new MarksServer(fd, wake, path, recorder, running, answers));
    return Status::ok();
  }
  if (fd >= 0) ::close(fd);
  return system_error("marks socket " + path + ": cannot be made", error_number);
}

MarksServer::MarksServer(int listening, int wake, std::string path, Recorder& recorder,
                         RunningCommands& running, Answers& answers)
    : listening_(listening),
      wake_(wake),
      path_(std::move(path)),
      recorder_(recorder),
      running_(running),
      answers_(answers),
      thread_([this] { loop(); }) {}

MarksServer::~MarksServer() {
  if (thread_.joinable()) stop();
  ::close(wake_);
}

void MarksServer::loop() {
  std::vector<pollfd> polled;
  while (true) {
    polled.assign({{wake_, POLLIN, 0}, {listening_, POLLIN, 0}});
    for (const Connection& connection : connections_) polled.push_back({connection.fd, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 2; i < polled.size(); ++i) {
      Connection& connection = connections_[i - 2];
      if (polled[i].revents != 0 && read_some(connection) == Arrived::kEnd) end(connection);
    }
    std::erase_if(connections_, [](const Connection& connection) { return connection.fd < 0; });
    if ((polled[1].revents & POLLIN) != 0) accept_one();
    if (polled[0].revents != 0) return;
  }
}

void MarksServer::accept_one() {
  const int fd = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (connections_.size() < kConnectionsMax) {
    connections_.push_back({fd, {}, 0, false});
    return;
  }
  ::close(fd);
  answers_.say_fault("connections", "marks: more than " + std::to_string(kConnectionsMax) +
                                        " connections at once: one was closed");
}

void MarksServer::end(Connection& connection) {
  if (!connection.begun.empty()) refuse(connection.begun, "the line has no end");
  ::close(connection.fd);
  connection.fd = -1;
}

MarksServer::Arrived MarksServer::read_some(Connection& connection) {
  char arrived[65536];
  const ssize_t count = ::read(connection.fd, arrived, sizeof arrived);
  const int64_t arrival_ns = board_ns();
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Arrived::kNothing;
  if (count <= 0) return Arrived::kEnd;
  std::string_view rest(arrived, static_cast<size_t>(count));
  for (size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;
       rest.remove_prefix(end + 1)) {
    const std::string_view part = rest.substr(0, end);
    if (connection.skipping)
      connection.skipping = false;
    else if (connection.begun.empty())
      take_line(connection, part, arrival_ns);
    else
      take_line(connection, connection.begun.append(part), arrival_ns);
    connection.begun.clear();
  }
  if (connection.skipping) return Arrived::kSome;
  connection.begun.append(rest);
  if (connection.begun.size() > kMarkBytesMax) {
    refuse(connection.begun, kTooLong);
    connection.begun.clear();
    connection.skipping = true;
  }
  return Arrived::kSome;
}

void MarksServer::take_line(Connection& connection, std::string_view line, int64_t arrival_ns) {
  if (line.size() > kMarkBytesMax) return refuse(line, kTooLong);
  Mark mark;
  Status status = parse_mark(line, arrival_ns, &mark);
  if (status.is_ok()) status = recorder_.take(mark);
  if (!status.is_ok()) return refuse(line, status.message());
  if (mark.kind == MarkKind::kRun) running_.add(mark.pid);
  if (mark.kind == MarkKind::kUnwatch) running_.remove(mark.pid);
  if (mark.kind != MarkKind::kSync) {
    ++connection.taken;
    return;
  }
  const std::string answer = "ok " + std::to_string(connection.taken) + "\n";
  static_cast<void>(
      ::send(connection.fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

void MarksServer::refuse(std::string_view line, const std::string& why) {
  ++refused_[why];
  answers_.say_fault("mark: " + why,
                     "mark '" + one_line(line.substr(0, kShownBytes)) + "': " + why);
}

void MarksServer::tell_refused() {
  for (const auto& [why, count] : refused_)
    if (count > 1)
      answers_.say_fault("refused: " + why,
                         "marks: " + std::to_string(count) + " lines were refused in all: " + why);
}

void MarksServer::stop() {
  const uint64_t one = 1;
  write_all(wake_, {reinterpret_cast<const char*>(&one), sizeof one});
  thread_.join();
  ::close(listening_);
  ::unlink(path_.c_str());
  for (Connection& connection : connections_) {
    // Takes what each workload has sent, but does not wait for one that goes on sending.
    for (int part = 0; part < kLastParts && read_some(connection) == Arrived::kSome; ++part) {
    }
    end(connection);
  }
  tell_refused();
}

}  // namespace opjoule
