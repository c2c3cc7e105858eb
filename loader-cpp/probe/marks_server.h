// The unix stream socket on which workloads send their marks to `probe serve`, one line each.
//
// Thread safety: started and stopped from one thread; lines are taken on a thread of its own. If
// the events file is slow, that thread waits, and so do the workloads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "loader/status.h"
#include "probe/answers.h"
#include "probe/recorder.h"
#include "probe/running_commands.h"

namespace opjoule {

class MarksServer {
 public:
  // Makes `path`, for this user alone; no other thread may make files meanwhile (umask).
  // The others outlive this object. kBadInput, kIo.
  static Status start(const std::string& path, Recorder& recorder, RunningCommands& running,
                      Answers& answers, std::unique_ptr<MarksServer>* out);
  ~MarksServer();
  MarksServer(const MarksServer&) = delete;
  MarksServer& operator=(const MarksServer&) = delete;

  // Takes what has arrived, closes and removes the socket. Called once.
  void stop();

 private:
  enum class Arrived { kSome, kNothing, kEnd };
  struct Connection {
    int fd = -1;
    std::string begun;      // a line whose end has not come yet
    uint64_t taken = 0;     // lines
    bool skipping = false;  // the rest of a line that is too long
  };

  MarksServer(int listening, int wake, std::string path, Recorder& recorder,
              RunningCommands& running, Answers& answers);
  void loop();
  void accept_one();
  Arrived read_some(Connection& connection);
  void end(Connection& connection);
  void take_line(Connection& connection, std::string_view line, int64_t arrival_ns);
  void refuse(std::string_view line, const std::string& why);
  void tell_refused();

  const int listening_;
  const int wake_;
  const std::string path_;
  Recorder& recorder_;
  RunningCommands& running_;
  Answers& answers_;
  std::vector<Connection> connections_;
  std::map<std::string, uint64_t> refused_;  // by mistake
  std::thread thread_;
};

}  // namespace opjoule
