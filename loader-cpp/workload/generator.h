// YCSB's CoreWorkload: the operations of the run phase and the inserts of the load phase.
//
// Thread safety: KeySpace is shared; each thread has its own generator.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "loader/random.h"
#include "workload/insert_counter.h"
#include "workload/mix_blocks.h"
#include "workload/settings.h"
#include "workload/source.h"
#include "workload/values.h"
#include "workload/zipfian.h"

namespace opjoule {

// What the threads of one phase share. The settings outlive it.
struct KeySpace {
  explicit KeySpace(const WorkloadSettings& workload_settings)
      : settings(workload_settings),
        inserts(workload_settings.row_count, workload_settings.threads),
        next_load_number(workload_settings.insert_start),
        load_end(workload_settings.insert_start + workload_settings.insert_count) {
    if (settings.mix_block_s > 0) mix_blocks.emplace(settings);
  }

  const WorkloadSettings& settings;
  InsertCounter inserts;
  alignas(64) std::atomic<uint64_t> sequential{0};
  alignas(64) std::atomic<uint64_t> next_load_number;
  uint64_t load_end;
  std::optional<MixBlocks> mix_blocks;
  uint64_t check_end = 0;  // a resumed load looks for each key below this one before it inserts it
};

// Draws the key numbers of requests. Source: YCSB's generators of the same names, CoreWorkload.init
// and nextKeynum.
class KeyChooser {
 public:
  KeyChooser(KeySpace& space, Random& random);
  // A key number that is at most `last`, the last acknowledged one.
  uint64_t draw(uint64_t last);

 private:
  uint64_t draw_hotspot();
  uint64_t draw_latest(uint64_t last);
  uint64_t draw_exponential(uint64_t last);

  KeySpace& space_;
  Random& random_;
  RequestDistribution distribution_;
  uint64_t start_;
  uint64_t count_;
  uint64_t modulus_ = 1;  // of the scrambled draws: room for the inserts to come
  YcsbZipfian scrambled_{YcsbZipfian::kScrambledItems, YcsbZipfian::kScrambledZeta};
  std::optional<YcsbZipfian> latest_;
  std::optional<TrueZipfian> true_zipfian_;
  uint64_t scatter_ = 1;  // coprime with modulus_
  uint64_t hot_ = 0;
  double exponential_mean_ = 0;
};

// Fills the values of rows and of updates.
class ValueMaker {
 public:
  ValueMaker(const WorkloadSettings& settings, uint32_t thread, Random& random);
  // All fields of the row `key`.
  void whole(const std::string& key, Row& out);
  // One field, drawn uniformly.
  void single(const std::string& key, Row& out);

 private:
  void fill(const std::string& key, Row& out);

  const WorkloadSettings& settings_;
  Random& random_;
  ValueBytes bytes_;
  std::vector<uint16_t> numbers_;
  std::vector<uint32_t> lengths_;
  std::string field_name_;
};

// The run phase.
class RunGenerator : public OperationSource {
 public:
  RunGenerator(KeySpace& space, uint32_t thread);
  size_t next(std::span<Operation> out, int64_t now_board_ns, Status& status) override;
  void done(const Operation& operation) override;

 protected:
  // From the next batch on; shares of operations, of any sum.
  void set_mix(std::span<const double, kOperationKinds> shares);

 private:
  OperationKind draw_kind();
  [[gnu::always_inline]] FieldChoice draw_fields();
  [[gnu::always_inline]] void prepare(Operation& operation);

  KeySpace& space_;
  const WorkloadSettings& settings_;
  uint32_t thread_;
  Random random_;
  KeyChooser keys_;
  ValueMaker values_;
  double kind_bounds_[kOperationKinds];
  bool reads_alone_ = false;
  std::optional<YcsbZipfian> scan_zipfian_;
  std::vector<uint64_t> numbers_;
};

// The run phase in randomised blocks.
class BlockGenerator : public RunGenerator {
 public:
  BlockGenerator(KeySpace& space, uint32_t thread);
  size_t next(std::span<Operation> out, int64_t now_board_ns, Status& status) override;

 private:
  MixBlocks& blocks_;
  uint32_t thread_;
};

// The operations of one thread of the run phase, in randomised blocks where the settings say so.
std::unique_ptr<OperationSource> run_source(KeySpace& space, uint32_t thread);

// The load phase: inserts of consecutive key numbers, handed out to the threads in short sequences.
class LoadGenerator : public OperationSource {
 public:
  // client: the thread's own, with which a resumed load looks for keys.
  LoadGenerator(KeySpace& space, uint32_t thread, Client* client = nullptr);
  size_t next(std::span<Operation> out, int64_t now_board_ns, Status& status) override;

 private:
  bool is_there(const std::string& key, Status& status);

  KeySpace& space_;
  Client* client_;
  Random random_;
  ValueMaker values_;
  Row found_;
};

// kCorrupt, naming the key and field, where `found` is not what dataintegrity=true wrote under
// `key`.
Status verify_values(const WorkloadSettings& settings, const std::string& key, FieldChoice fields,
                     const Row& found);

}  // namespace opjoule
