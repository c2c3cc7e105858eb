// One operation of a workload, ready to be done.
//
// Thread safety: none; each thread reuses its own batch.
#pragma once

#include <cstdint>
#include <string>

#include "loader/database.h"
#include "loader/row.h"
#include "oplog/operation_kind.h"

namespace opjoule {

struct Operation {
  OperationKind kind = OperationKind::kRead;
  bool whole = false;        // an update of every field
  FieldChoice fields;        // what a read or scan asks for
  uint64_t scan_length = 0;  // rows
  std::string key;
  Row values;  // what an insert, update, read-modify-write or put-back writes
};

}  // namespace opjoule
