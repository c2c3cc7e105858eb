// What `probe serve` says on stdout: JSON lines, each written at once.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "loader/status.h"

namespace opjoule {

using Json = nlohmann::ordered_json;

class Answers {
 public:
  void say(const Json& line);
  // The answer to `clock`; the second time in it is taken just before it is written.
  void say_clock(int64_t received_board_ns);
  void say_error(std::string_view request, const std::string& why);
  // {"fault":...}, once for each kind of fault.
  void say_fault(const std::string& kind, const std::string& text);

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace opjoule
