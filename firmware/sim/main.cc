// rig-sim: runs the meter's real firmware without hardware; see docs/reference/rig-sim.md.
#include <csignal>
#include <cstdio>

#include "errors.h"
#include "options.h"
#include "rig.h"

namespace {

volatile std::sig_atomic_t stop_signal = 0;

void catch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int number) { stop_signal = number; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace opjoule::rig;
  try {
    const Options options = parse_options(argc, argv);
    if (!options.help.empty()) {
      std::fputs(options.help.c_str(), stdout);
      return 0;
    }
    catch_signals();
    Rig rig(options);
    std::printf("SIMULATED meter at %s%s%s\n", rig.port().c_str(),
                options.pty.empty() ? "" : ", link ", options.pty.c_str());
    std::fflush(stdout);
    return rig.run(stop_signal);
  } catch (const RigError& error) {
    std::fprintf(stderr, "rig-sim: %s\n", error.what());
    return error.exit_code;
  }
}
