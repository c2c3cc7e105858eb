// The bare loops: each engine's own API called as directly as it can be, with the keys, values and
// engine settings the loader uses, and nothing else: nothing is timed, counted or logged for each
// operation. What the loader is measured against. Keys and values are drawn in the loop, by the
// loader's own code, or are all ready before the clock starts.
#pragma once

#include <time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bare_draws.h"

namespace opjoule {

struct BareRequest {
  std::string path;  // folder of the database; a load's is empty
  bool load = true;
  uint64_t records = 0;
  uint64_t operations = 0;           // of a read phase
  uint32_t value_bytes = 1000;       // of a record, all fields together
  uint32_t fields = 1;               // columns, where the engine has columns
  std::unique_ptr<BareDraws> draws;  // null: keys and values are ready
  std::vector<std::string> keys;
  std::string pool;  // values are slices of it

  [[nodiscard]] uint64_t count() const { return load ? records : operations; }
};

struct BareResult {
  double duration_s = 0;
  double cpu_s = 0;
  uint64_t bytes_read = 0;
};

// The key of operation i; asked for once, in order.
inline const std::string& bare_key(const BareRequest& request, uint64_t i) {
  return request.draws ? request.draws->key(i) : request.keys[i];
}

// The value of operation i, until the next is asked for.
inline std::string_view bare_value(const BareRequest& request, uint64_t i) {
  if (request.draws) return request.draws->value();
  const uint64_t slices = request.pool.size() / request.value_bytes;
  return {request.pool.data() + i % slices * request.value_bytes, request.value_bytes};
}

inline double clock_s(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Runs operation(i) for each operation.
template <typename Operation>
BareResult timed_loop(const BareRequest& request, Operation operation) {
  BareResult result;
  const double start_s = clock_s(CLOCK_MONOTONIC);
  const double cpu_start_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t i = 0; i < request.count(); ++i) result.bytes_read += operation(i);
  result.duration_s = clock_s(CLOCK_MONOTONIC) - start_s;
  result.cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_start_s;
  return result;
}

// Runs operation(key, i) for each operation's key.
template <typename Operation>
BareResult bare_loop(const BareRequest& request, Operation operation) {
  return timed_loop(request, [&](uint64_t i) { return operation(bare_key(request, i), i); });
}

// Each gives the loop's result, or ends the process with a line on stderr.
BareResult bare_null(const BareRequest& request);
BareResult bare_leveldb(const BareRequest& request);
BareResult bare_sqlite(const BareRequest& request);
BareResult bare_rocksdb(const BareRequest& request);
BareResult bare_lmdb(const BareRequest& request);
BareResult bare_berkeleydb(const BareRequest& request);

[[noreturn]] void bare_failure(const std::string& what);

}  // namespace opjoule
