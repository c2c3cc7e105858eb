#include "cli/phase_lines.h"

#include "board/clock.h"
#include "board/output.h"

namespace opjoule {

void PhaseLines::print(const std::string& phase, int64_t phase_board_ns,
                       const std::string& more) const {
  print_line("{\"phase\":\"" + phase + "\",\"board_ns\":" + std::to_string(phase_board_ns) +
             ",\"operations\":" + std::to_string(operations_()) + more + "}");
}

void PhaseLines::print_now(const std::string& phase, const std::string& more) const {
  print(phase, board_ns(), more);
}

}  // namespace opjoule
