#include "workload/settings.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "workload/prose.h"

namespace opjoule {
namespace {

constexpr int64_t kMostKeys = int64_t{1} << 62;

// Names stand in lines of text.
bool is_name(const std::string& text, char excluded) {
  return std::ranges::none_of(text, [excluded](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == excluded;
  });
}

// Reads typed properties until the first error, which it keeps.
class Reader {
 public:
  explicit Reader(const Properties& properties) : properties_(properties) {}

  template <typename Int>
  void integer(const char* key, int64_t minimum, int64_t maximum, Int* out) {
    int64_t value = static_cast<int64_t>(*out);
    if (status_.is_ok()) status_ = properties_.integer(key, minimum, maximum, &value);
    *out = static_cast<Int>(value);
  }
  void real(const char* key, double minimum, double maximum, double* out) {
    if (status_.is_ok()) status_ = properties_.real(key, minimum, maximum, out);
  }
  void boolean(const char* key, bool* out) {
    if (status_.is_ok()) status_ = properties_.boolean(key, out);
  }
  // Index of the chosen word in `allowed`.
  size_t choice(const char* key, const std::vector<std::string>& allowed, size_t fallback) {
    std::string word = allowed[fallback];
    if (status_.is_ok()) status_ = properties_.choice(key, allowed, &word);
    for (size_t i = 0; i < allowed.size(); ++i)
      if (allowed[i] == word) return i;
    return fallback;
  }
  void fail_if(bool contradiction, const std::string& message) {
    if (status_.is_ok() && contradiction) status_ = {StatusCode::kBadInput, message};
  }
  void keep(Status status) {
    if (status_.is_ok()) status_ = std::move(status);
  }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const Properties& properties() const { return properties_; }

 private:
  const Properties& properties_;
  Status status_;
};

void read_amounts(Reader& in, Phase phase, uint32_t threads, WorkloadSettings* out) {
  in.integer("recordcount", 0, kMostKeys, &out->row_count);
  in.integer("insertstart", 0, kMostKeys, &out->insert_start);
  if (phase == Phase::kReplay && out->row_count == 0) out->row_count = 1;
  in.fail_if(out->row_count == 0,
             "property recordcount: not given, or 0; set it to the number of records, as in -p "
             "recordcount=1000000");
  out->insert_count = out->row_count > out->insert_start ? out->row_count - out->insert_start : 0;
  in.integer("insertcount", 0, kMostKeys, &out->insert_count);
  in.fail_if(out->insert_start + out->insert_count > out->row_count,
             "insertstart=" + std::to_string(out->insert_start) +
                 " + insertcount=" + std::to_string(out->insert_count) +
                 ": expected at most recordcount, which is " + std::to_string(out->row_count));
  in.fail_if(out->insert_count == 0, "insertcount: 0 records are left from insertstart=" +
                                         std::to_string(out->insert_start) + " on; lower it");
  in.integer("operationcount", 0, kMostKeys, &out->operation_count);
  in.real("maxexecutiontime", 0, 1e9, &out->max_execution_s);
  in.fail_if(
      phase == Phase::kRun && out->operation_count == 0 && out->max_execution_s == 0,
      "property operationcount: not given, and maxexecutiontime neither; set one of them, as in -p "
      "operationcount=1000000");
  // Of a run that only time ends, neither the requests nor their cost may depend on that time.
  out->insert_room_operations = out->operation_count > 0 ? out->operation_count : out->row_count;
  in.integer("insertroom.operations", 0, kMostKeys, &out->insert_room_operations);
  in.integer("threadcount", 1, 1024, &out->threads);
  if (threads > 0) out->threads = threads;
  in.real("target", 0, 1e12, &out->target_per_s);
  out->exponential_arrivals = in.choice("arrivals", {"even", "exponential"}, 0) == 1;
  in.boolean("spin.sleep", &out->spin_sleep);
  out->intended_latency = in.choice("measurement.interval", {"op", "intended", "both"}, 2) != 0;
  in.integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(),
             &out->seed);
}

void read_text(Reader& in, WorkloadSettings* out) {
  const std::string name = in.properties().text("valuetext", "");
  if (name.empty()) return;
  in.fail_if(out->data_integrity || out->value_compress_ratio < 1,
             "property valuetext=" + name +
                 ": values are pieces of it; leave dataintegrity and valuecompressratio out");
  std::string text;
  in.keep(read_value_text(name, out->seed, &text));
  out->value_text = std::make_shared<const std::string>(std::move(text));
}

void read_rows(Reader& in, WorkloadSettings* out) {
  out->table = in.properties().text("table", "usertable");
  out->field_prefix = in.properties().text("fieldnameprefix", "field");
  in.fail_if(
      out->table.empty() || !is_name(out->table, ' '),
      "property table=" + out->table + ": expected a name without spaces and control characters");
  in.fail_if(!is_name(out->field_prefix, '='),
             "property fieldnameprefix=" + out->field_prefix +
                 ": expected a name without spaces, control characters and '='");
  in.integer("fieldcount", 1, 65535, &out->field_count);
  in.integer("zeropadding", 0, 200, &out->key_format.zero_padding);
  out->key_format.hashed = in.choice("insertorder", {"hashed", "ordered"}, 0) == 0;
  in.keep(FieldLengths::from(in.properties(), &out->field_lengths));
  out->value_characters = in.choice("valuecharacters", {"printable", "any"}, 0) == 0
                              ? ValueCharacters::kPrintable
                              : ValueCharacters::kAny;
  in.real("valuecompressratio", 0, 1, &out->value_compress_ratio);
  in.boolean("dataintegrity", &out->data_integrity);
  in.boolean("valuedigest", &out->value_digest);
  read_text(in, out);
  in.fail_if(out->data_integrity && !out->field_lengths.is_constant(),
             "dataintegrity=true needs fieldlengthdistribution=constant: a read must know each "
             "value's length");
  const uint64_t row_bytes = uint64_t{out->field_lengths.maximum()} * out->field_count;
  in.fail_if(row_bytes > uint64_t{1} << 30, "fieldcount=" + std::to_string(out->field_count) +
                                                " fields of up to " +
                                                std::to_string(out->field_lengths.maximum()) +
                                                " bytes: expected records of at most 1 GiB");
}

void read_operations(Reader& in, Phase phase, WorkloadSettings* out) {
  constexpr const char* kKeys[kOperationKinds] = {"readproportion",   "updateproportion",
                                                  "insertproportion", "readmodifywriteproportion",
                                                  "scanproportion",   "removeproportion"};
  double sum = 0;
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    in.real(kKeys[kind], 0, 1e9, &out->proportion[kind]);
    sum += out->proportion[kind];
  }
  in.fail_if(!(sum > 0), "all proportions are 0: set at least one, as in -p readproportion=1");
  in.real("mixblock.length_s", 0, 86400, &out->mix_block_s);
  const bool one_kind =
      std::count(out->proportion, out->proportion + kOperationKinds, 0.0) == kOperationKinds - 1;
  in.fail_if(
      phase == Phase::kRun && out->mix_block_s > 0 && one_kind,
      "property mixblock.length_s: a workload of one kind of operation has no mix that could "
      "change; leave it out");
  in.fail_if(phase == Phase::kReplay && out->mix_block_s > 0,
             "property mixblock.length_s: a trace brings its own mix; leave one of them out");
  const size_t distribution = in.choice(
      "requestdistribution",
      {"uniform", "zipfian", "truezipfian", "latest", "hotspot", "exponential", "sequential"}, 0);
  out->distribution = static_cast<RequestDistribution>(distribution);
  in.real("truezipfian.theta", 0.01, 10, &out->zipfian_theta);
  const bool has_ycsbs_exponent = out->distribution == RequestDistribution::kZipfian ||
                                  out->distribution == RequestDistribution::kLatest;
  in.fail_if(has_ycsbs_exponent && out->zipfian_theta != YcsbZipfian::kTheta,
             "property truezipfian.theta=" + in.properties().text("truezipfian.theta", "") +
                 ": zipfian and latest are YCSB's, whose exponent is 0.99; set "
                 "requestdistribution=truezipfian for another");
  in.real("hotspotdatafraction", 0, 1, &out->hotspot_data_fraction);
  in.real("hotspotopnfraction", 0, 1, &out->hotspot_operation_fraction);
  in.real("exponential.percentile", 0.001, 99.999999, &out->exponential_percentile);
  in.real("exponential.frac", 1e-9, 1e9, &out->exponential_fraction);
  in.boolean("readallfields", &out->read_all_fields);
  in.boolean("writeallfields", &out->write_all_fields);
  out->blind_updates = in.choice("updates", {"read-merge-write", "blind"}, 0) == 1;
  out->blind_removes = in.choice("removes", {"checked", "blind"}, 0) == 1;
  in.boolean("putback", &out->put_back);
  in.integer("minscanlength", 1, kMostKeys, &out->scan_minimum);
  in.integer("maxscanlength", 1, kMostKeys, &out->scan_maximum);
  out->scan_zipfian = in.choice("scanlengthdistribution", {"uniform", "zipfian"}, 0) == 1;
  in.fail_if(out->scan_minimum > out->scan_maximum,
             "property minscanlength=" + std::to_string(out->scan_minimum) +
                 ": expected at most maxscanlength, which is " + std::to_string(out->scan_maximum));
}

// In a trace each line says what its update holds.
void check_updates(Reader& in, Phase phase, const WorkloadSettings& settings) {
  const auto share = [&](OperationKind kind) {
    return settings.proportion[static_cast<int>(kind)];
  };
  const bool updates = phase == Phase::kRun && (share(OperationKind::kUpdate) > 0 ||
                                                share(OperationKind::kReadModifyWrite) > 0);
  in.fail_if(
      updates && settings.blind_updates && !settings.updates_whole_rows(),
      "property updates=blind: an update of one of " + std::to_string(settings.field_count) +
          " fields has to read the others; set fieldcount=1 or writeallfields=true, or leave "
          "updates out");
}

void read_load(Reader& in, WorkloadSettings* out) {
  in.integer("core_workload_insertion_retry_limit", 0, 1'000'000, &out->retry_limit);
  in.real("core_workload_insertion_retry_interval", 0, 86400, &out->retry_interval_s);
  in.boolean("core_workload_insertion_keep_going_on_error", &out->keep_going);
}

void check_hotspot(Reader& in, const WorkloadSettings& settings) {
  if (settings.distribution != RequestDistribution::kHotspot) return;
  const uint64_t hot = static_cast<uint64_t>(static_cast<double>(settings.insert_count) *
                                             settings.hotspot_data_fraction);
  in.fail_if(hot == 0 && settings.hotspot_operation_fraction > 0,
             "hotspotdatafraction: no record of " + std::to_string(settings.insert_count) +
                 " is hot, but hotspotopnfraction asks for hot ones");
  in.fail_if(hot == settings.insert_count && settings.hotspot_operation_fraction < 1,
             "hotspotdatafraction: all records are hot, but hotspotopnfraction asks for cold ones");
}

}  // namespace

bool WorkloadSettings::only_reads() const {
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    const auto operation = static_cast<OperationKind>(kind);
    const bool reads = operation == OperationKind::kRead || operation == OperationKind::kScan;
    if (!reads && proportion[kind] > 0) return false;
  }
  return true;
}

Status WorkloadSettings::from(const Properties& properties, Phase phase, uint32_t threads,
                              WorkloadSettings* out) {
  Reader in(properties);
  const std::string workload = properties.text("workload", "CoreWorkload");
  in.fail_if(workload != "CoreWorkload" && !workload.ends_with(".CoreWorkload"),
             "property workload=" + workload + ": expected site.ycsb.workloads.CoreWorkload");
  read_amounts(in, phase, threads, out);
  read_rows(in, out);
  read_operations(in, phase, out);
  read_load(in, out);
  check_hotspot(in, *out);
  check_updates(in, phase, *out);
  return in.status();
}

}  // namespace opjoule
