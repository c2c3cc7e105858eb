// Records for `probe serve`: events and samples in the current files, phase marks to stdout,
// samples and edges to the live feed.
//
// Thread safety: any thread. A failure to write is reported once, and the rest goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "board/event_file.h"
#include "board/live_feed.h"
#include "board/sync_carrier.h"
#include "probe/answers.h"
#include "probe/load_signature.h"
#include "probe/mark.h"
#include "probe/sampler.h"

namespace opjoule {

class Recorder {
 public:
  // folder: of the files. `live` may be null; it and `answers` outlive this object.
  Recorder(std::string folder, SamplerSettings settings, Answers& answers);
  ~Recorder();

  // From now on writes NAME.events.jsonl and NAME.system.csv, neither of which may exist yet; the
  // former files are then complete. On a failure it goes on with the former ones.
  Status files(const std::string& name);
  void sync_edge(const SyncEdge& edge);
  // Between these two calls samples include the probe itself.
  void signature_begins();
  void signature_ends(const LoadSignature& played);
  // Any mark but sync. kBadInput where it cannot be done.
  Status take(const Mark& mark);
  // Last rows and events. Called once.
  void stop();

 private:
  void tell_failures();
  void close_events(std::unique_ptr<EventFile> events);

  const std::string folder_;
  Answers& answers_;
  LiveFeed* live_;
  std::mutex files_mutex_;          // one new name at a time
  std::shared_mutex events_mutex_;  // held alone while events_ changes
  std::unique_ptr<EventFile> events_;
  std::mutex early_mutex_;
  std::vector<SyncEdge> early_edges_;  // from before the first files
  std::unique_ptr<Sampler> sampler_;   // last: its thread uses what is above
};

}  // namespace opjoule
