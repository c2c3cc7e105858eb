// bare-loop DB load|read|update|blind PATH RECORDS OPERATIONS VALUE_BYTES FIELDS drawn|ready: one
// bare loop, its figures as one JSON line.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "bench/bare.h"
#include "board/proc_file.h"
#include "workload/generator.h"

namespace opjoule {

void bare_failure(const std::string& what) {
  std::fprintf(stderr, "bare-loop: %s\n", what.c_str());
  std::exit(3);
}

namespace {

constexpr size_t kPoolBytes = size_t{64}
                              << 20;  // values repeat after so many bytes, no compressor sees that

using Loop = BareResult (*)(const BareRequest&);

const std::map<std::string, Loop>& loops() {
  static const std::map<std::string, Loop> all{
      {"null", bare_null},
#ifdef BARE_LEVELDB
      {"leveldb", bare_leveldb},
#endif
#ifdef BARE_SQLITE
      {"sqlite", bare_sqlite},
#endif
#ifdef BARE_ROCKSDB
      {"rocksdb", bare_rocksdb},
#endif
#ifdef BARE_LMDB
      {"lmdb", bare_lmdb},
#endif
#ifdef BARE_BERKELEYDB
      {"berkeleydb", bare_berkeleydb},
#endif
  };
  return all;
}

const std::map<std::string, BarePhase>& phases() {
  static const std::map<std::string, BarePhase> all{{"load", BarePhase::kLoad},
                                                    {"read", BarePhase::kRead},
                                                    {"update", BarePhase::kUpdate},
                                                    {"blind", BarePhase::kBlind}};
  return all;
}

// Every key and the pool of values, before the clock starts.
void prepare(BareRequest& request) {
  BareDraws draws(request.rows, request.operations, request.phase == BarePhase::kLoad,
                  request.value_bytes);
  request.keys.resize(request.count());
  for (uint64_t i = 0; i < request.keys.size(); ++i) request.keys[i] = draws.key(i);
  if (request.phase == BarePhase::kRead) return;
  request.pool.resize(kPoolBytes);
  ValueBytes(1, 0, ValueCharacters::kPrintable, 1).fill_random(request.pool);
}

int run(int argc, char** argv) {
  if (argc != 9 || loops().find(argv[1]) == loops().end() ||
      phases().find(argv[2]) == phases().end())
    bare_failure(
        "DB load|read|update|blind PATH RECORDS OPERATIONS VALUE_BYTES FIELDS drawn|ready");
  BareRequest request;
  request.phase = phases().at(argv[2]);
  request.path = argv[3];
  request.rows = std::strtoull(argv[4], nullptr, 10);
  request.operations = std::strtoull(argv[5], nullptr, 10);
  request.value_bytes = static_cast<uint32_t>(std::strtoul(argv[6], nullptr, 10));
  request.fields = static_cast<uint32_t>(std::strtoul(argv[7], nullptr, 10));
  const bool loads = request.phase == BarePhase::kLoad;
  if (loads) mkdir(request.path.c_str(), 0755);
  if (std::string(argv[8]) == "ready")
    prepare(request);
  else
    request.draws =
        std::make_unique<BareDraws>(request.rows, request.operations, loads, request.value_bytes);
  const BareResult result = loops().at(argv[1])(request);
  const ProcessMemory memory = process_memory();
  std::printf(
      "{\"operations\":%llu,\"duration_s\":%.9f,\"cpu_s\":%.9f,\"peak_memory_bytes\":%llu,"
      "\"anonymous_memory_bytes\":%llu}\n",
      static_cast<unsigned long long>(request.count()), result.duration_s, result.cpu_s,
      static_cast<unsigned long long>(memory.peak_resident_bytes),
      static_cast<unsigned long long>(memory.anonymous_bytes));
  return 0;
}

}  // namespace
}  // namespace opjoule

int main(int argc, char** argv) { return opjoule::run(argc, argv); }
