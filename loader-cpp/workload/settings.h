// A workload's settings: every CoreWorkload property of YCSB, with its default and meaning, and the
// loader's own.
//
// Thread safety: values, shared for reading.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loader/properties.h"
#include "loader/status.h"
#include "workload/field_lengths.h"
#include "workload/key.h"
#include "workload/operation.h"
#include "workload/values.h"

namespace opjoule {

enum class Phase {
  kLoad,
  kRun,
  kReplay,  // the operations of a trace, which brings its own keys and amounts
};

enum class RequestDistribution {
  kUniform,
  kZipfian,  // YCSB's scrambled one
  kTrueZipfian,
  kLatest,
  kHotspot,
  kExponential,
  kSequential,
};

struct WorkloadSettings {
  // Key space and amounts.
  uint64_t row_count = 0;
  uint64_t insert_start = 0;
  uint64_t insert_count = 0;
  uint64_t operation_count = 0;         // 0: until max_execution_s
  double max_execution_s = 0;           // 0: no limit
  uint64_t insert_room_operations = 0;  // zipfian requests leave room for their inserts
  uint32_t threads = 1;
  double target_per_s = 0;            // all threads together; 0: as fast as it goes
  bool exponential_arrivals = false;  // the gaps between ticks, which are equal otherwise
  bool spin_sleep = false;
  bool intended_latency = true;
  uint64_t seed = 1;

  // Rows.
  KeyFormat key_format;
  uint16_t field_count = 10;
  std::string field_prefix = "field";
  std::string table = "usertable";
  FieldLengths field_lengths;
  ValueCharacters value_characters = ValueCharacters::kPrintable;
  double value_compress_ratio = 1;
  std::shared_ptr<const std::string> value_text;  // that values are pieces of; none: see above
  bool data_integrity = false;
  bool value_digest = false;  // the summary tells a digest of what reads have found

  // Operations.
  double proportion[kOperationKinds] = {0.95, 0.05, 0, 0, 0, 0};
  double mix_block_s = 0;  // randomised blocks of a run last so long; 0: one mix throughout
  RequestDistribution distribution = RequestDistribution::kUniform;
  double zipfian_theta = 0.99;  // of truezipfian alone
  double hotspot_data_fraction = 0.2;
  double hotspot_operation_fraction = 0.8;
  double exponential_percentile = 95;
  double exponential_fraction = 0.8571428571;
  bool read_all_fields = true;
  bool write_all_fields = false;
  bool blind_removes = false;  // without looking whether there is anything to remove
  bool put_back = false;       // a removed row is inserted again, outside of the operation
  bool blind_updates = false;  // an update of all fields is put without reading the row first
  uint64_t scan_minimum = 1;
  uint64_t scan_maximum = 1000;
  bool scan_zipfian = false;

  // Insertion during load.
  uint32_t retry_limit = 0;
  double retry_interval_s = 3;
  bool keep_going = false;

  // Every update writes all fields of its row.
  [[nodiscard]] bool updates_whole_rows() const { return write_all_fields || field_count == 1; }

  // No operation of a run can write.
  [[nodiscard]] bool only_reads() const;

  // kBadInput for the first value that is out of range or contradicts another. `threads` 0 takes
  // threadcount.
  static Status from(const Properties& properties, Phase phase, uint32_t threads,
                     WorkloadSettings* out);
};

// Every key the workload knows, the ones without effect here included.
const std::vector<PropertyRule>& workload_rules();
// Keys of YCSB's client that are accepted so that its files can be used as they are, and change
// nothing here.
const std::vector<PropertyRule>& inert_rules();
// Keys with which other programs name the place of a database that is built in here; --path does.
const std::vector<PropertyRule>& place_rules();
// What to write in place of names that other programs or people use, for the message.
const std::vector<PropertyRule>& translated_rules();
// Whether a key is of a binding of YCSB or of its ports for a database that is not built in.
bool is_foreign(std::string_view key);

}  // namespace opjoule
