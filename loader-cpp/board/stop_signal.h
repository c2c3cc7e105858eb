// SIGINT and SIGTERM as a flag, which all loops and waits look at.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace opjoule {

// From now on SIGINT and SIGTERM raise the flag; a second one ends the process at once. SIGPIPE is
// ignored: the write fails instead.
void catch_stop_signals();
bool stop_requested();
// Raises the flag as a signal does; a signal after it still counts as the first.
void request_stop();
// Raised once; workers watch this.
std::atomic<bool>& stop_flag();

}  // namespace opjoule
