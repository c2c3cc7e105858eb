// What watches the board during a command: events file, sync line, system samples, and the phase
// lines that mark its parts.
//
// Thread safety: one thread; the parts have threads of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "board/event_file.h"
#include "board/sync_line.h"
#include "board/system_sampler.h"
#include "cli/options.h"
#include "loader/status.h"

namespace opjoule {

class Instruments {
 public:
  // `operations` is asked from the sampler's thread.
  Status start(const CommandOptions& options, uint64_t seed, std::function<uint64_t()> operations);
  // Toggles the sync line, and gives the moment as board_ns.
  int64_t mark();
  // A phase line on stdout; `more` are further JSON members, each with a comma before.
  void print_phase(const std::string& phase, int64_t phase_board_ns, const std::string& more = "");
  // mark() and print_phase() at once.
  void phase(const std::string& phase, const std::string& more = "");
  // The first failure to write one of the files: the stop flag is up then.
  [[nodiscard]] Status status() const;
  // Last row, last events; gives the first failure. Called once.
  Status stop();

  [[nodiscard]] EventFile* events() { return events_.get(); }
  [[nodiscard]] uint64_t sync_edges() const { return sync_edges_; }
  [[nodiscard]] uint64_t dropped_events() const { return dropped_events_; }

 private:
  std::function<uint64_t()> operations_;
  std::unique_ptr<EventFile> events_;  // outlives the line and the engine
  std::unique_ptr<SyncLine> sync_;
  std::unique_ptr<SystemSampler> system_;
  uint64_t sync_edges_ = 0;
  uint64_t dropped_events_ = 0;
};

}  // namespace opjoule
