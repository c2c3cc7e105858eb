// What a phase did: counts, outcomes and latencies by kind of operation.
//
// Thread safety: none; each worker has its own, merged once all have ended.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "loader/database.h"
#include "loader/status.h"
#include "workload/latency.h"
#include "workload/operation.h"

namespace opjoule {

struct KindResults {
  uint64_t succeeded = 0;
  uint64_t not_found = 0;
  uint64_t failed = 0;                // without not_found
  uint64_t bytes = 0;                 // of values, read and written
  LatencyHistogram latency;           // of the operations that succeeded
  LatencyHistogram intended_latency;  // since the tick the target rate set, with a target
};

struct PhaseResults {
  std::array<KindResults, kOperationKinds> by_kind;
  std::map<StatusCode, uint64_t> failures;
  Status first_failure;  // of an operation, with its kind and key
  Status fatal;          // why the phase was given up: log, client or source failed
  RetryCounts retries;
  uint64_t insert_retries = 0;
  uint64_t value_digest = 0;   // sum of the CRC-32s of keys and values read; with valuedigest=true
  uint64_t skipped_lines = 0;  // of a trace

  // not_found_expected: removals make missing keys normal, they are not counted as errors.
  [[nodiscard]] uint64_t errors(bool not_found_expected) const {
    uint64_t sum = 0;
    for (const KindResults& kind : by_kind)
      sum += kind.failed + (not_found_expected ? 0 : kind.not_found);
    return sum;
  }
  // The first failure with the number of errors; ok without any.
  [[nodiscard]] Status failure(bool not_found_expected) const {
    const uint64_t count = errors(not_found_expected);
    if (count == 0) return Status::ok();
    return {first_failure.code(), std::to_string(count) + " of " + std::to_string(operations()) +
                                      " operations failed; the first: " + first_failure.message()};
  }
  [[nodiscard]] uint64_t operations() const {
    uint64_t sum = 0;
    for (const KindResults& kind : by_kind) sum += kind.succeeded + kind.not_found + kind.failed;
    return sum;
  }
  void merge(const PhaseResults& other) {
    for (int i = 0; i < kOperationKinds; ++i) {
      by_kind[i].succeeded += other.by_kind[i].succeeded;
      by_kind[i].not_found += other.by_kind[i].not_found;
      by_kind[i].failed += other.by_kind[i].failed;
      by_kind[i].bytes += other.by_kind[i].bytes;
      by_kind[i].latency.merge(other.by_kind[i].latency);
      by_kind[i].intended_latency.merge(other.by_kind[i].intended_latency);
    }
    for (const auto& [code, count] : other.failures) failures[code] += count;
    if (first_failure.is_ok()) first_failure = other.first_failure;
    if (fatal.is_ok()) fatal = other.fatal;
    retries.busy += other.retries.busy;
    retries.stall += other.retries.stall;
    retries.timeout += other.retries.timeout;
    insert_retries += other.insert_retries;
    value_digest += other.value_digest;
    skipped_lines += other.skipped_lines;
  }
};

}  // namespace opjoule
