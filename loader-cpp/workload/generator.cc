#include "workload/generator.h"

#include <algorithm>

namespace opjoule {

RunGenerator::RunGenerator(KeySpace& space, uint32_t thread)
    : space_(space),
      settings_(space.settings),
      thread_(thread),
      random_(space.settings.seed, thread),
      keys_(space, random_),
      values_(space.settings, thread, random_) {
  set_mix(settings_.proportion);
  if (settings_.scan_zipfian)
    scan_zipfian_.emplace(settings_.scan_maximum - settings_.scan_minimum + 1);
}

void RunGenerator::set_mix(std::span<const double, kOperationKinds> shares) {
  double sum = 0;
  for (const double share : shares) sum += share;
  double bound = 0;
  for (int kind = 0; kind < kOperationKinds; ++kind)
    kind_bounds_[kind] = (bound += shares[kind] / sum);
  // After rounding every draw must still give an operation, and none of a kind whose share is 0.
  for (int kind = kOperationKinds - 1; kind >= 0; --kind) {
    kind_bounds_[kind] = 2;
    if (shares[kind] > 0) break;
  }
  reads_alone_ = kind_bounds_[0] >= 1;
}

OperationKind RunGenerator::draw_kind() {
  const double u = random_.unit();
  int kind = 0;
  while (u >= kind_bounds_[kind]) ++kind;
  return static_cast<OperationKind>(kind);
}

inline FieldChoice RunGenerator::draw_fields() {
  if (settings_.read_all_fields) return {};
  return {false, static_cast<uint16_t>(random_.below(settings_.field_count))};
}

inline void RunGenerator::prepare(Operation& operation) {
  if (operation.kind == OperationKind::kRead) [[likely]] {
    operation.fields = draw_fields();
    return;
  }
  switch (operation.kind) {
    case OperationKind::kRead:
      break;  // above: most workloads read most
    case OperationKind::kReadModifyWrite:
      operation.fields = draw_fields();
      [[fallthrough]];
    case OperationKind::kUpdate:
      operation.whole = settings_.updates_whole_rows();
      if (operation.whole)
        values_.whole(operation.key, operation.values);
      else
        values_.single(operation.key, operation.values);
      break;
    case OperationKind::kInsert:
      values_.whole(operation.key, operation.values);
      break;
    case OperationKind::kScan:
      operation.fields = draw_fields();
      operation.scan_length =
          settings_.scan_minimum +
          (scan_zipfian_ ? scan_zipfian_->draw(random_)
                         : random_.below(settings_.scan_maximum - settings_.scan_minimum + 1));
      break;
    case OperationKind::kRemove:
      if (settings_.put_back) values_.whole(operation.key, operation.values);
      break;
  }
}

size_t RunGenerator::next(std::span<Operation> out, int64_t, Status&) {
  const uint64_t last = space_.inserts.acknowledged_end() - 1;
  if (numbers_.size() < out.size()) numbers_.resize(out.size());
  // Kinds and key numbers first, then keys and values: the steps of each loop are independent of
  // one another.
  size_t count = 0;
  while (count < out.size()) {
    const OperationKind kind = reads_alone_ ? OperationKind::kRead : draw_kind();
    out[count].kind = kind;
    if (kind == OperationKind::kInsert) {
      numbers_[count++] = space_.inserts.take(thread_);
      break;
    }
    numbers_[count++] = keys_.draw(last);
  }
  const KeyFormat format = settings_.key_format;
  for (size_t i = 0; i < count; ++i) format_key(numbers_[i], format, out[i].key);
  // A read of all fields is an operation as it is.
  if (!reads_alone_ || !settings_.read_all_fields)
    for (Operation& operation : out.first(count)) prepare(operation);
  return count;
}

void RunGenerator::done(const Operation& operation) {
  if (operation.kind == OperationKind::kInsert) space_.inserts.acknowledge(thread_);
}

BlockGenerator::BlockGenerator(KeySpace& space, uint32_t thread)
    : RunGenerator(space, thread), blocks_(*space.mix_blocks), thread_(thread) {}

size_t BlockGenerator::next(std::span<Operation> out, int64_t now_board_ns, Status& status) {
  MixBlocks::Shares mix;
  if (blocks_.follow(thread_, now_board_ns, &mix)) set_mix(mix);
  const size_t count = RunGenerator::next(out, now_board_ns, status);
  for (const Operation& operation : out.first(count)) blocks_.add(thread_, operation.kind, 1);
  return count;
}

std::unique_ptr<OperationSource> run_source(KeySpace& space, uint32_t thread) {
  if (space.mix_blocks) return std::make_unique<BlockGenerator>(space, thread);
  return std::make_unique<RunGenerator>(space, thread);
}

LoadGenerator::LoadGenerator(KeySpace& space, uint32_t thread, Client* client)
    : space_(space),
      client_(client),
      random_(space.settings.seed, thread),
      values_(space.settings, thread, random_) {}

size_t LoadGenerator::next(std::span<Operation> out, int64_t, Status& status) {
  while (true) {
    const uint64_t first = space_.next_load_number.fetch_add(out.size(), std::memory_order_relaxed);
    if (first >= space_.load_end) return 0;
    const uint64_t end = std::min(first + out.size(), space_.load_end);
    size_t count = 0;
    for (uint64_t number = first; number < end; ++number) {
      Operation& operation = out[count];
      format_key(number, space_.settings.key_format, operation.key);
      if (number < space_.check_end && is_there(operation.key, status)) continue;
      if (!status.is_ok()) return 0;
      operation.kind = OperationKind::kInsert;
      ++count;
    }
    for (Operation& operation : out.first(count)) values_.whole(operation.key, operation.values);
    if (count > 0) return count;
  }
}

bool LoadGenerator::is_there(const std::string& key, Status& status) {
  const Status read = client_->read(key, {}, found_);
  // A row that cannot be read whole (cut off by a power failure) is written again.
  const bool missing = read.is_not_found() || read.code() == StatusCode::kCorrupt;
  if (!read.is_ok() && !missing) status = read;
  return read.is_ok();
}

}  // namespace opjoule
