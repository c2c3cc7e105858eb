// Where a thread's operations come from: the generator, the load's key sequence, or a trace.
//
// Thread safety: one source a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "loader/status.h"
#include "workload/operation.h"

namespace opjoule {

class OperationSource {
 public:
  virtual ~OperationSource() = default;
  // Fills `out` from its front; gives the number of operations, 0 at the end or on an error, which
  // is then in `status`. Operations come in batches, so that drawing them is no part of their
  // latencies. An insert is always the last of its batch, so that every later operation may see it.
  // now_board_ns: end of the thread's last operation, or the start of the phase.
  virtual size_t next(std::span<Operation> out, int64_t now_board_ns, Status& status) = 0;
  // Whether another program makes the operations: their end may then come some time after the last
  // one.
  [[nodiscard]] virtual bool is_stream() const { return false; }
  // The operation has been done, or has failed for good.
  virtual void done(const Operation& operation) { static_cast<void>(operation); }
};

}  // namespace opjoule
