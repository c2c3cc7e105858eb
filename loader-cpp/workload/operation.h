// One operation of a workload, ready to be done.
//
// Thread safety: none; each thread reuses its own batch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "loader/database.h"
#include "loader/record.h"

namespace opjoule {

// The numbers are those of the operation log.
enum class OperationKind : uint8_t {
  kRead = 0,
  kUpdate = 1,
  kInsert = 2,
  kReadModifyWrite = 3,
  kScan = 4,
  kRemove = 5,
};
inline constexpr int kOperationKinds = 6;

constexpr std::string_view kind_name(OperationKind kind) {
  constexpr std::string_view kNames[] = {"read", "update", "insert", "read-modify-write",
                                         "scan", "remove"};
  return kNames[static_cast<int>(kind)];
}

struct Operation {
  OperationKind kind = OperationKind::kRead;
  bool whole = false;        // an update of every field
  FieldChoice fields;        // what a read or scan asks for
  uint64_t scan_length = 0;  // records
  std::string key;
  Record values;  // what an insert, update or read-modify-write writes
};

}  // namespace opjoule
