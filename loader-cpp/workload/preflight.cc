#include "workload/preflight.h"

#include <algorithm>

#include "workload/key.h"

namespace opjoule {
namespace {

// Number of keys around the end of an interrupted load that are looked for one by one: more than
// the unfinished batches of all threads hold.
constexpr uint64_t kWindow = 4096;
// Number of a database's last rows of which at least one must be there.
constexpr uint64_t kLastKeys = 16;

class KeyProbe {
 public:
  KeyProbe(Client& client, const KeyFormat& format) : client_(client), format_(format) {}

  // Whether the key is there; failures other than a missing key are kept in status().
  bool has(uint64_t number) {
    format_key(number, format_, key_);
    Status status = client_.read(key_, {}, found_);
    if (status.is_ok()) return true;
    if (!status.is_not_found() && status_.is_ok()) status_ = std::move(status);
    return false;
  }
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  Client& client_;
  const KeyFormat& format_;
  std::string key_;
  Row found_;
  Status status_;
};

Status other_workload(const std::string& key) {
  return {StatusCode::kMismatch,
          "the database does not hold this workload's keys (such as " + key +
              "): it was loaded with other settings of insertorder, zeropadding or "
              "insertstart; load it with this workload"};
}

Status fewer_rows(uint64_t number) {
  return {StatusCode::kMismatch,
          "the database does not hold the last of this workload's records (number " +
              std::to_string(number) +
              "): it was loaded with a smaller recordcount, not to the end, or has lost its newest "
              "records with the end of a log; load it with this workload, or finish it with load "
              "--resume"};
}

}  // namespace

Status check_loaded(Client& client, const WorkloadSettings& settings) {
  KeyProbe probe(client, settings.key_format);
  const uint64_t start = settings.insert_start;
  const uint64_t count = settings.insert_count;
  // Usually takes one read. An earlier run may have removed some of the last rows.
  for (uint64_t back = 1; back <= std::min(kLastKeys, count); ++back) {
    if (probe.has(start + count - back)) return Status::ok();
    if (!probe.status().is_ok()) return probe.status();
  }
  for (const uint64_t offset : {count / 2, count / 3, uint64_t{0}}) {
    if (probe.has(start + offset)) return fewer_rows(start + count - 1);
    if (!probe.status().is_ok()) return probe.status();
  }
  return other_workload(probe.key());
}

Status check_not_inserted(Client& client, const WorkloadSettings& settings) {
  if (settings.proportion[static_cast<int>(OperationKind::kInsert)] == 0) return Status::ok();
  KeyProbe probe(client, settings.key_format);
  if (!probe.has(settings.row_count)) return probe.status();
  return {
      StatusCode::kMismatch,
      "the database holds the first key that this run inserts (number " +
          std::to_string(settings.row_count) +
          ") already: an earlier run inserted it; load the database anew, or give the number of "
          "its records as recordcount"};
}

Status find_resume_point(Client& client, const WorkloadSettings& settings, uint64_t found,
                         ResumePoint* out) {
  KeyProbe probe(client, settings.key_format);
  const uint64_t start = settings.insert_start;
  const uint64_t end = start + settings.insert_count;
  uint64_t low = start;  // all below is taken to be there
  uint64_t high = end;   // from here on nothing is
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (probe.has(middle))
      low = middle + 1;
    else
      high = middle;
    if (!probe.status().is_ok()) return probe.status();
  }
  out->first_number = low - std::min(low - start, kWindow);
  out->check_end = std::min(end, low + kWindow);
  const bool loads_everything = start == 0 && settings.insert_count == settings.row_count;
  if (!loads_everything) return Status::ok();  // the count includes what other loaders inserted
  uint64_t present = 0;
  for (uint64_t number = out->first_number; number < out->check_end && probe.status().is_ok();
       ++number)
    present += probe.has(number) ? 1 : 0;
  if (!probe.status().is_ok()) return probe.status();
  if (found > 0 && out->first_number == start && present == 0) return other_workload(probe.key());
  // There may be gaps further back: a thread may have waited long for a lock after it took its
  // keys.
  if (out->first_number - start + present != found) *out = {start, end};
  return Status::ok();
}

}  // namespace opjoule
