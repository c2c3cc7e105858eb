// SIGINT and SIGTERM as a flag that everything which waits or loops looks at.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace opjoule {

// From now on SIGINT and SIGTERM raise the flag; a second one ends the process at once. SIGPIPE is
// ignored: writes tell.
void catch_stop_signals();
bool stop_requested();
// Raises the flag as a signal does; the first signal after it is not taken for a second one.
void request_stop();
// Raised once; workers watch this.
std::atomic<bool>& stop_flag();

}  // namespace opjoule
