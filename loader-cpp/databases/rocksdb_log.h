// Writes RocksDB's messages to its usual file LOG. RocksDB's own logger ends the process when the
// disk is full (an assertion in Debian's build); this one leaves out what cannot be written.
//
// Thread safety: called by RocksDB from any of its threads.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace opjoule {

// Replaces `path`; if it cannot be opened, the messages are dropped.
std::shared_ptr<rocksdb::Logger> rocksdb_log(const std::string& path);

}  // namespace opjoule
