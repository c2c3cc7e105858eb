// The FIFO of the live input.
#pragma once

#include <string>

#include "signal/live_feed.h"

namespace opjoule::rig {

/// Opens and reads a FIFO (or a file) without ever waiting for its writer.
class LiveInput {
 public:
  /// Throws RigError if the path cannot be opened.
  explicit LiveInput(const std::string& path);
  ~LiveInput();
  LiveInput(const LiveInput&) = delete;
  LiveInput& operator=(const LiveInput&) = delete;

  /// Reads what there is. Returns false once the writer has closed its end.
  bool read_into(LiveFeed& feed);

  /// Readable when there is input; -1 after the end.
  int fd() const { return fd_; }

 private:
  int fd_;
  bool had_writer_ = false;
};

}  // namespace opjoule::rig
