// `loader sync`: the load signature.
#include "board/exit_code.h"
#include "board/output.h"
#include "board/stop_signal.h"
#include "cli/commands.h"
#include "cli/instruments.h"
#include "probe/load_signature.h"

namespace opjoule {

int sync_command(const CommandOptions& options) {
  Instruments instruments;
  const uint64_t seed = static_cast<uint64_t>(options.seed.value_or(1));
  const Status status = instruments.start(options, seed, [] { return uint64_t{0}; });
  if (!status.is_ok()) return report_failure(status);
  const std::string bits =
      options.pattern.empty() ? maximum_length_bits(options.bits, seed) : options.pattern;
  instruments.mark();
  const LoadSignature played = play_signature(bits, options.bit_ms);
  instruments.mark();
  if (EventFile* events = instruments.events(); events != nullptr)
    for (const LoadChange& change : played.changes)
      events->load_change(change.board_ns, change.u_ns, change.level);
  instruments.print_phase("sync-start", played.start_board_ns,
                          ",\"bit_ns\":" + std::to_string(int64_t{options.bit_ms} * 1'000'000) +
                              ",\"bits\":\"" + bits + "\"");
  instruments.print_phase("sync-end", played.end_board_ns);
  const Status stopped = instruments.stop();
  if (!stopped.is_ok()) return report_failure(stopped);
  return stop_requested() ? kExitInterrupted : kExitOk;
}

}  // namespace opjoule
