#include "board/stop_signal.h"
#include "programs/medium_sim_words.h"

int main(int argc, char** argv) {
  using namespace opjoule;
  MediumSimWords words;
  if (const auto ended = parse(argc, argv, &words)) return *ended;
  if (words.command == "run") return medium_run_command(words.run);
  catch_stop_signals();
  return medium_serve_command(words.serve);
}
