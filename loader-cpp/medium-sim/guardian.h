// A process that outlives `medium-sim serve` while programs run under its filter, so that its end,
// however it comes, leaves nobody blocked or stopped.
//
// The kernel fails trapped calls with ENOSYS once a listener is closed everywhere
// (seccomp_unotify(2)). The guardian keeps a copy of each listener. When serve ends it lets run the
// calls that serve had received and not answered, continues processes that serve had stopped, and
// then lets every trapped call run until the last program under the filter has ended.
//
// Thread safety: none.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "loader/status.h"

namespace opjoule {

class Guardian {
 public:
  static constexpr int kListenersMax = 256;
  static constexpr int kStoppedMax = 1024;

  // Forks; before any thread is made. kIo.
  static Status start(Guardian* out);

  // Gives it a copy of a listener; its place among them, or -1 where there are too many.
  int add(int listener);
  // Which calls may be unanswered: all of an id from `oldest` to the newest noted.
  void note_oldest(int place, uint64_t oldest);
  void note_newest(int place, uint64_t newest);
  // A process that serve stops by a signal, before it does so; false where there are too many.
  bool note_stopped(pid_t pid);
  void note_continued(pid_t pid);
  // The listener's programs have all ended.
  void remove(int place);

 private:
  struct Range {
    std::atomic<uint64_t> oldest;
    std::atomic<uint64_t> newest;
    std::atomic<bool> used;
  };
  struct Shared {
    Range ranges[kListenersMax];
    std::atomic<pid_t> stopped[kStoppedMax];
  };
  class Watch;

  Shared* shared_ = nullptr;
  int socket_ = -1;
};

}  // namespace opjoule
