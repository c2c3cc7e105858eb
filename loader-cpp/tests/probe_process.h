// The probe as a program, and a workload's end of its marks, for tests of what they say.
#pragma once

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/loader_process.h"

namespace opjoule {

class Probe : public Program {
 public:
  explicit Probe(Arguments arguments) : Program(OPJOULE_PROBE_BINARY, std::move(arguments)) {}

  // Lines up to one that `fits`, which is given.
  Json until(const std::function<bool(const Json&)>& fits) {
    while (auto text = line()) {
      const Json json = Json::parse(*text, nullptr, false);
      REQUIRE_MESSAGE(!json.is_discarded(), *text);
      seen.push_back(json);
      if (fits(json)) return json;
    }
    FAIL("the probe ended before it said what was expected");
    return {};
  }
  Json answer(const std::string& request) {
    return until([&](const Json& json) { return json.value("answer", "") == request; });
  }
  Json ask(const std::string& request) {
    write(request + "\n");
    return answer(request.substr(0, request.find(' ')));
  }
  // Ends its input; its last lines.
  std::vector<Json> rest() {
    end_input();
    std::vector<Json> all;
    for (const std::string& text : lines()) all.push_back(Json::parse(text));
    return all;
  }

  std::vector<Json> seen;
};

// `probe serve` in a folder, its first line read.
class ServingProbe : public Probe {
 public:
  explicit ServingProbe(const std::string& folder, Arguments more = {})
      : Probe(arguments(folder, std::move(more))),
        first(until([](const Json& json) { return json.contains("probe"); })) {}

  const Json first;

 private:
  static Arguments arguments(const std::string& folder, Arguments more) {
    more.insert(more.begin(), {"serve", "--dir", folder});
    return more;
  }
};

// A connection to the socket of the marks.
class Workload {
 public:
  explicit Workload(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  ~Workload() { close(fd_); }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  void tell(const std::string& lines) const {
    for (size_t sent = 0; sent < lines.size();) {
      const ssize_t count = send(fd_, lines.data() + sent, lines.size() - sent, MSG_NOSIGNAL);
      REQUIRE(count > 0);
      sent += static_cast<size_t>(count);
    }
  }
  // The answer to `sync`.
  [[nodiscard]] std::string sync() const {
    tell("sync\n");
    std::string text;
    for (char c = 0; read(fd_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

 private:
  int fd_;
};

}  // namespace opjoule
