// The lines on stdout that mark the parts of a phase.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace opjoule {

class PhaseLines {
 public:
  // operations: done so far.
  explicit PhaseLines(std::function<uint64_t()> operations) : operations_(std::move(operations)) {}
  // `more`: further JSON members, each preceded by a comma.
  void print(const std::string& phase, int64_t phase_board_ns, const std::string& more = "") const;
  // A part that begins now.
  void print_now(const std::string& phase, const std::string& more = "") const;

 private:
  std::function<uint64_t()> operations_;
};

}  // namespace opjoule
