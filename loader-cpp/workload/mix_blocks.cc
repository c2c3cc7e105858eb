#include "workload/mix_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace opjoule {
namespace {

constexpr uint64_t kStream = 0x6d697865;  // the mixes have draws of their own
constexpr double kConcentration = 1;      // most blocks are mostly of one kind
constexpr double kAheadBlocks = 32;       // in which kinds come back to their proportions
constexpr double kLeastPart = 0.25;       // of its proportion, for a kind that is far ahead
constexpr double kFade = 1.0 / 64;        // of what is known of a kind, with each block

using Shares = MixBlocks::Shares;

double sum(const Shares& shares) {
  double total = 0;
  for (const double share : shares) total += share;
  return total;
}

Shares scaled_to_one(Shares shares) {
  const double total = sum(shares);
  for (double& share : shares) share /= total;
  return shares;
}

Shares proportions(const WorkloadSettings& settings) {
  Shares shares;
  std::copy_n(settings.proportion, kOperationKinds, shares.begin());
  return scaled_to_one(shares);
}

// In (0, 1).
double open_unit(Random& random) {
  return (static_cast<double>(random.next() >> 12) + 0.5) * 0x1p-52;
}

// Source: Box, Muller, Ann. Math. Stat. 29 (1958).
double draw_normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(open_unit(random)));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

// Logarithm of a gamma variate, which may be too small for a double itself. Source: Marsaglia,
// Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000): shape + 1, and a
// power of a uniform variate for shapes below 1.
double draw_log_gamma(Random& random, double shape) {
  const double d = shape + 1 - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(random);
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(open_unit(random)) < x * x / 2 + d * (1 - v + std::log(v)))
      return std::log(d * v) + std::log(open_unit(random)) / shape;
  }
}

}  // namespace

Shares draw_dirichlet(Random& random, const Shares& mean, double concentration) {
  Shares logs;
  for (int kind = 0; kind < kOperationKinds; ++kind)
    logs[kind] = mean[kind] > 0 ? draw_log_gamma(random, concentration * mean[kind])
                                : -std::numeric_limits<double>::infinity();
  const double largest = *std::max_element(logs.begin(), logs.end());
  Shares shares;
  for (int kind = 0; kind < kOperationKinds; ++kind) shares[kind] = std::exp(logs[kind] - largest);
  return scaled_to_one(shares);
}

MixBlocks::MixBlocks(const WorkloadSettings& settings)
    : proportion_(proportions(settings)),
      length_s_(settings.mix_block_s),
      random_(settings.seed ^ kStream, 0),
      threads_(settings.threads) {
  each_s_.fill(1);
}

bool MixBlocks::follow(uint32_t thread, int64_t now_board_ns, Shares* mix) {
  if (now_board_ns >= end_board_ns_.load(std::memory_order_relaxed)) begin_block(now_board_ns);
  Thread& own = threads_[thread];
  if (number_.load(std::memory_order_relaxed) == own.block) return false;
  const std::lock_guard lock(mutex_);
  own.block = number_.load(std::memory_order_relaxed);
  *mix = mix_;
  return true;
}

void MixBlocks::begin_block(int64_t now_board_ns) {
  const std::lock_guard lock(mutex_);
  if (now_board_ns < end_board_ns_.load(std::memory_order_relaxed)) return;  // another thread did
  Counts so_far{}, in_block{};
  for (const Thread& thread : threads_)
    for (int kind = 0; kind < kOperationKinds; ++kind)
      so_far[kind] += thread.counts[kind].load(std::memory_order_relaxed);
  for (int kind = 0; kind < kOperationKinds; ++kind)
    in_block[kind] = so_far[kind] - at_begin_[kind];
  learn(in_block, static_cast<double>(now_board_ns - begin_board_ns_) * 1e-9);
  const Shares time = draw_dirichlet(random_, wanted_time(so_far), kConcentration);
  for (int kind = 0; kind < kOperationKinds; ++kind) mix_[kind] = time[kind] / each_s_[kind];
  mix_ = scaled_to_one(mix_);
  at_begin_ = so_far;
  begin_board_ns_ = now_board_ns;
  end_board_ns_.store(now_board_ns + static_cast<int64_t>(length_s_ * 1e9),
                      std::memory_order_relaxed);
  number_.fetch_add(1, std::memory_order_relaxed);
}

// Shares the block's time out among its operations by what is known of each kind, and knows more of
// each kind then. What lies between operations (drawing them, waiting for a tick) is in it.
void MixBlocks::learn(const Counts& in_block, double lasted_s) {
  double known_s = 0, operations = 0;
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    known_s += static_cast<double>(in_block[kind]) * each_s_[kind];
    operations += static_cast<double>(in_block[kind]);
  }
  if (operations == 0 || lasted_s <= 0) return;
  const double slower = lasted_s * static_cast<double>(threads_.size()) / known_s;
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    const double count = static_cast<double>(in_block[kind]);
    time_s_[kind] = time_s_[kind] * (1 - kFade) + count * each_s_[kind] * slower;
    operations_[kind] = operations_[kind] * (1 - kFade) + count;
  }
  const double usual_s = sum(time_s_) / sum(operations_);
  for (int kind = 0; kind < kOperationKinds; ++kind)
    each_s_[kind] = operations_[kind] > 0 ? time_s_[kind] / operations_[kind] : usual_s;
}

// Mean shares of time with which the next blocks bring each kind to its proportion.
Shares MixBlocks::wanted_time(const Counts& so_far) const {
  double done = 0, mean_s = 0;
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    done += static_cast<double>(so_far[kind]);
    mean_s += proportion_[kind] * each_s_[kind];
  }
  const double ahead =
      kAheadBlocks * length_s_ * static_cast<double>(threads_.size()) / mean_s;  // operations
  Shares wanted;
  for (int kind = 0; kind < kOperationKinds; ++kind) {
    const double owed = proportion_[kind] * (done + ahead) - static_cast<double>(so_far[kind]);
    wanted[kind] = std::max(owed, kLeastPart * proportion_[kind] * ahead) * each_s_[kind];
  }
  return scaled_to_one(wanted);
}

}  // namespace opjoule
