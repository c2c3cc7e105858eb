#include "board/stop_signal.h"
#include "probe/board_commands.h"
#include "programs/probe_words.h"

int main(int argc, char** argv) {
  using namespace opjoule;
  ProbeWords words;
  if (const auto ended = parse(argc, argv, &words)) return *ended;
  if (words.command == "run") return run_command(words.run);  // handles signals itself
  catch_stop_signals();
  if (words.command == "serve") return serve_command(words.serve);
  if (words.command == "mark") return mark_command(words.mark);
  return gpio_command(words.gpio_sync, words.gpio_pulses, kProbe);
}
