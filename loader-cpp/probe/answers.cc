#include "probe/answers.h"

#include <unistd.h>

#include "board/clock.h"
#include "board/write_all.h"

namespace opjoule {

// If the reader has gone, that is no failure here: the end of stdin tells that the host is gone.

void Answers::say(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(mutex_);
  write_all(STDOUT_FILENO, text);
}

void Answers::say_clock(int64_t received_board_ns) {
  const std::string begin =
      R"({"answer":"clock","received_ns":)" + std::to_string(received_board_ns) + ",\"sent_ns\":";
  const std::lock_guard lock(mutex_);
  write_all(STDOUT_FILENO, begin + std::to_string(board_ns()) + "}\n");
}

void Answers::say_error(std::string_view request, const std::string& why) {
  say({{"answer", "error"}, {"line", request}, {"error", why}});
}

void Answers::say_fault(const std::string& kind, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!said_.insert(kind).second) return;
  }
  say({{"fault", text}});
}

}  // namespace opjoule
