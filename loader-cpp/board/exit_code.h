// Exit codes by kind of failure, of loader and probe; docs/reference/loader.md has the same table.
#pragma once

#include "loader/status.h"

namespace opjoule {

enum ExitCode {
  kExitOk = 0,
  kExitOperationsFailed = 1,  // the phase ended, but operations did not end as the workload expects
  kExitBadInput = 2,          // command line, property, file name
  kExitDatabase = 3,          // the engine, its device or its connection failed; locked
  kExitCorrupt = 4,           // stored data contradicts itself, or was written with other settings
  kExitNoSpace = 5,
  kExitUnsupported = 6,
  kExitIncomplete = 7,  // a load that maxexecutiontime cut short
  kExitInterrupted = 130,
};

inline int exit_code(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return kExitOk;
    case StatusCode::kBadInput:
      return kExitBadInput;
    case StatusCode::kNotFound:
    case StatusCode::kExists:
    case StatusCode::kBusy:
    case StatusCode::kIo:
      return kExitDatabase;
    case StatusCode::kMismatch:
    case StatusCode::kCorrupt:
      return kExitCorrupt;
    case StatusCode::kNoSpace:
      return kExitNoSpace;
    case StatusCode::kUnsupported:
      return kExitUnsupported;
    case StatusCode::kIncomplete:
      return kExitIncomplete;
    case StatusCode::kInterrupted:
      return kExitInterrupted;
  }
  return kExitDatabase;
}

}  // namespace opjoule
