// RocksDB's own words, into its usual file LOG. RocksDB's logger ends the process where the disk is
// full (an assertion of Debian's build); this one leaves out what cannot be written.
//
// Thread safety: called by RocksDB from any of its threads.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace opjoule {

// Replaces `path`; lines go nowhere where it cannot be opened.
std::shared_ptr<rocksdb::Logger> rocksdb_log(const std::string& path);

}  // namespace opjoule
