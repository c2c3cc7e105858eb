// The bare loops: each engine's own API called as directly as it can be, with the keys, values and
// engine settings the loader uses, and nothing else: nothing is timed, counted or logged for each
// operation. What the loader is measured against. Keys and values are drawn in the loop, by the
// loader's own code, or are all ready before the clock starts.
#pragma once

#include <time.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bare_draws.h"

namespace opjoule {

enum class BarePhase {
  kLoad,
  kRead,
  kUpdate,  // get, merge, put; SQLite: its statement
  kBlind,   // put alone
};

struct BareRequest {
  std::string path;  // folder of the database; a load's is empty
  BarePhase phase = BarePhase::kLoad;
  uint64_t rows = 0;
  uint64_t operations = 0;           // of the other phases
  uint32_t value_bytes = 1000;       // of a row, all fields together
  uint32_t fields = 1;               // columns, where the engine has columns
  std::unique_ptr<BareDraws> draws;  // null: keys and values are ready
  std::vector<std::string> keys;
  std::string pool;  // values are slices of it

  [[nodiscard]] uint64_t count() const { return phase == BarePhase::kLoad ? rows : operations; }
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

// Overwrites the fields of a stored row, which stand at its end: the loader can read what the
// bare loop wrote.
inline void bare_merge(std::string_view value, std::string& row) {
  if (row.size() >= value.size())
    std::memcpy(row.data() + row.size() - value.size(), value.data(), value.size());
}

// All phases of an engine that stores a row as one value: get(key, std::string*) and put(key,
// value) end the process where they fail.
template <typename Get, typename Put>
BareResult bare_pairs(const BareRequest& request, Get get, Put put) {
  std::string row;
  switch (request.phase) {
    case BarePhase::kLoad:
      return bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
        put(key, bare_value(request, i));
        return 0;
      });
    case BarePhase::kRead:
      return bare_loop(request, [&](const std::string& key, uint64_t) {
        get(key, &row);
        return row.size();
      });
    case BarePhase::kBlind:
      get("user6284781860667377211", &row);  // YCSB's first key, for the row's layout
      return bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
        bare_merge(bare_value(request, i), row);
        put(key, row);
        return 0;
      });
    case BarePhase::kUpdate:
      break;
  }
  return bare_loop(request, [&](const std::string& key, uint64_t i) -> uint64_t {
    get(key, &row);
    bare_merge(bare_value(request, i), row);
    put(key, row);
    return 0;
  });
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
