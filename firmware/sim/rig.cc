#include "rig.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "link/real_clock.h"
#include "mcu/timer_flags.h"

namespace opjoule::rig {
namespace {

/// Message end_of_input (messages.toml), after a delimiter that ends whatever frame is open. By it
/// the host distinguishes an orderly end from a pulled cable.
const std::vector<std::uint8_t> kEndOfInput = {0x00, 0x08, 0x0b, 0xff, 0xff,
                                               0xff, 0xff, 0x3c, 0x64, 0x00};
constexpr double kLongestFrame_s = 0.1;
constexpr double kSlice_s = 1e-3;          // how often the host and the input are looked at
constexpr double kPromptSlice_s = 0.2e-3;  // while a command from the host is being answered
constexpr double kPrompt_s = 20e-3;
constexpr double kTick_s = 1e-6;                  // less than a byte takes on the line
constexpr double kCommandGap_s = 20e-3;           // longer than any answer takes
constexpr double kHistory_s = 2;                  // of a live input, longer than any conversion
constexpr std::uint64_t kClockSeed = 0x636C6F63;  // so that all random sources differ

/// True once: when a fault's time has come.
bool comes_due(const std::optional<double>& at_s, double now_s, bool& done) {
  if (!at_s || done || now_s < *at_s) return false;
  return done = true;
}

HostPort::Bunching bunching(const Options& options) {
  if (options.pace != Pace::kFree) return {512, 16e-3, true};
  return {4096, 20e-3, false};
}

}  // namespace

Rig::Rig(const Options& options)
    : options_(options),
      feed_(options.feeder),
      mcu_(options.elf, options.clock, options.seed ^ kClockSeed),
      link_(options.pty, options.patience_s),
      host_port_(link_, options.drop_rate, options.seed ^ 0x6C696E6B, bunching(options)),
      uart_(mcu_, [this](std::uint8_t byte) { host_port_.push(byte, mcu_.now_s()); }),
      twi_(mcu_),
      sync_(mcu_, options.sync_pin, [this](std::uint64_t cycle, bool) { edge_played(cycle); }),
      bench_(mcu_, twi_, options.live.empty() ? file_profile_ : feed_.profile(), options),
      garbage_(options.seed ^ 0x67617262) {
  if (options.old_boot_loader) mcu_.add_old_boot_loader();
  if (options.pace == Pace::kHost) grant_.emplace(options.grant_fd);
  clear_timer_flags_singly(mcu_);
  mcu_.on_reset([this] {
    if (booted_) send_garbage();
  });
  if (!options.bus_log.empty()) bus_log_.emplace(twi_, options.bus_log);
  if (!options.live.empty()) {
    live_.emplace(options.live);
    if (!options.course.empty()) course_.emplace(options.course, feed_);
    return;
  }
  file_profile_ = Profile::read(options.profile, options.feeder);
  if (options.sync.empty()) return;
  for (const auto& edge : read_sync_edges(options.sync)) file_edges_.push_back(edge);
}

int Rig::run(const volatile std::sig_atomic_t& stop) {
  const bool begun = wait_for_host(stop);
  try {
    if (begun) {
      boot();
      play(stop);
    }
  } catch (const RigError&) {
    write_truth(true);
    throw;
  }
  if (!stop) {
    finish_frame();
    host_port_.hand_on(mcu_.now_s(), stop, true);
    if (!live_ && !unplug_done_) link_.send(kEndOfInput, stop);
    drain(stop);
  }
  write_truth(stop != 0);
  return stop ? 128 + stop : 0;
}

/// A line that closes in the middle of a frame would count as damaged; a frame lasts 9 ms.
void Rig::finish_frame() {
  const double until_s = mcu_.now_s() + kLongestFrame_s;
  while (!live_ && !host_port_.at_frame_end() && mcu_.now_s() < until_s)
    mcu_.run_until(mcu_.cycle_at(mcu_.now_s() + kPromptSlice_s));
}

/// False if the live input ends, or a signal comes, before the host has said anything.
bool Rig::wait_for_host(const volatile std::sig_atomic_t& stop) {
  while (!stop && !feed_.ended()) {
    if (grant_)
      grant_->wait(stop);
    else
      wait_readable(link_.fd(), live_ ? live_->fd() : -1, 0.1);
    if (live_) take_live();
    const auto bytes = link_.receive();
    uart_.feed(bytes.data(), bytes.size());
    if (!bytes.empty()) return true;
    if (grant_ && grant_->asked()) grant_->reached(grant_->until_ns());
  }
  return false;
}

void Rig::boot() {
  boot_host_ns_ = grant_ ? grant_->now_ns() : monotonic_ns();
  booted_ = true;
  send_garbage();
  if (options_.hold_sda && options_.hold_sda->at_s < 0) hold_data();
  if (options_.open_sync_hz) sync_.open_line(*options_.open_sync_hz);
  if (live_) {
    boot_board_ns_ = boot_host_ns_ - std::llround(options_.delay_s * 1e9);
  } else if (options_.start == ProfileStart::kBoot) {
    start_profile(0);
  } else {
    bench_.on_first_sample([this](double rig_s) { start_profile(rig_s); });
  }
}

/// What a boot loader, or the line during a reset, may send: any bytes, zeros included.
void Rig::send_garbage() {
  for (std::size_t i = 0; i < options_.reset_garbage; ++i)
    host_port_.push(static_cast<std::uint8_t>(garbage_()), mcu_.now_s());
}

void Rig::hold_data() {
  hold_done_ = true;
  twi_.hold_data(options_.hold_sda->clocks);
}

void Rig::start_profile(double rig_s) {
  bench_.start_at(rig_s);
  truth_.emplace(file_profile_);
  for (const auto& edge : file_edges_) {
    edge_times_s_.push_back(edge.time_s);
    sync_.add(mcu_.cycle_at(rig_s + edge.time_s), edge.level);
  }
}

/// Places the live input on the rig's time axis, once nothing from before start-up can follow.
void Rig::start_live() {
  if (bench_.board().started() || feed_.watermark_ns() < boot_board_ns_ || !feed_.started()) return;
  const double boot_s = feed_.profile_s(boot_board_ns_);
  bench_.start_at(-boot_s);
  truth_.emplace(feed_.profile(), boot_s);
}

void Rig::play(const volatile std::sig_atomic_t& stop) {
  while (!stop && !ended()) step(stop);
}

/// Simulates a slice.
void Rig::step(const volatile std::sig_atomic_t& stop) {
  const double now_s = mcu_.now_s();
  const double slice_s = now_s < prompt_until_s_ ? kPromptSlice_s : kSlice_s;
  await_time(slice_s, stop);
  if (stop) return;
  if (live_) take_live();
  listen();
  double target_s = std::min(allowed_s(), now_s + kSlice_s);
  if (!arrivals_.empty()) target_s = std::min(target_s, arrivals_.front().rig_s);
  mcu_.run_until(mcu_.cycle_at(target_s));
  const bool sent = host_port_.hand_on(mcu_.now_s(), stop, mcu_.now_s() < prompt_until_s_);
  play_faults(stop);
  if (grant_) tell_host(sent, stop);
}

/// Waits until the next slice may be simulated, unless the host or the input says something.
void Rig::await_time(double slice_s, const volatile std::sig_atomic_t& stop) {
  if (grant_) {
    grant_->wait(stop);
    return;
  }
  const double early_s = mcu_.now_s() + slice_s - allowed_s();
  if (early_s > 0 && !feed_.ended())
    wait_readable(link_.fd(), live_ ? live_->fd() : -1, std::min(early_s, kSlice_s));
}

/// Answers the host if its grant is over, or if it has something to read and asked for that.
void Rig::tell_host(bool sent, const volatile std::sig_atomic_t& stop) {
  const bool over = mcu_.now_s() >= allowed_s() - kTick_s;
  if (!over && !(sent && grant_->for_reading())) return;
  link_.settle(stop);
  const std::int64_t now_ns = boot_host_ns_ + std::llround(mcu_.now_s() * 1e9);
  grant_->reached(over ? grant_->until_ns() : now_ns);
}

/// Waits until the host has read everything; what the host does about it takes none of the rig's
/// time.
void Rig::drain(const volatile std::sig_atomic_t& stop) {
  if (grant_ && grant_->asked()) link_.settle(stop);
  grant_.reset();
  link_.drain(stop);
}

/// Rig time up to which the rig may run now.
double Rig::allowed_s() const {
  if (live_) return live_allowed_s();
  if (grant_) return static_cast<double>(grant_->until_ns() - boot_host_ns_) * 1e-9;
  // Before it samples, the meter waits for the host, so there is no use in running ahead.
  const bool free = options_.pace != Pace::kReal;
  if (free && bench_.board().started()) return mcu_.now_s() + kSlice_s;
  return static_cast<double>(monotonic_ns() - boot_host_ns_) * 1e-9;
}

double Rig::live_allowed_s() const {
  const std::int64_t known_ns = feed_.watermark_ns();
  const std::int64_t due_ns = monotonic_ns() - std::llround(options_.delay_s * 1e9);
  const std::int64_t until_ns = feed_.ended() ? known_ns : std::min(known_ns, due_ns);
  return static_cast<double>(until_ns - boot_board_ns_) * 1e-9;
}

bool Rig::ended() const {
  if (live_) return feed_.ended() && mcu_.now_s() + kSlice_s / 16 >= live_allowed_s();
  return bench_.board().started() &&
         bench_.board().profile_s(mcu_.now_s()) >= file_profile_.last_s() + options_.tail_s;
}

void Rig::take_live() {
  if (live_->fd() >= 0 && !live_->read_into(feed_)) feed_.take("\nq\n");
  if (boot_board_ns_ == 0) return;
  start_live();
  feed_live_edges();
  if (!bench_.board().started()) return;  // a late row from before start-up still counts
  feed_.simulated_until(boot_board_ns_ + std::llround(mcu_.now_s() * 1e9));
  feed_.profile().forget_before(bench_.board().profile_s(mcu_.now_s()) - kHistory_s);
}

/// Edges behind the watermark are in their final order.
void Rig::feed_live_edges() {
  auto& edges = feed_.edges();
  for (;
       bench_.board().started() && !edges.empty() && edges.front().board_ns <= feed_.watermark_ns();
       edges.pop_front()) {
    const double rig_s = static_cast<double>(edges.front().board_ns - boot_board_ns_) * 1e-9;
    if (rig_s < 0) continue;
    edge_times_s_.push_back(feed_.profile_s(edges.front().board_ns));
    sync_.add(mcu_.cycle_at(rig_s), edges.front().level);
  }
}

void Rig::edge_played(std::uint64_t cycle) {
  edge_cycles_.push_back(cycle);
  truth_->edge(edge_times_s_.front());
  edge_times_s_.pop_front();
}

/// Reads what the host has sent, and passes to the UART what is due.
///
/// If the rig lags behind (a busy computer, a late input), it keeps a byte until it has reached the
/// moment at which the byte arrived: a late answer makes a round trip longer, which the host sees,
/// but does not shift its middle. Commands that have piled up meanwhile are passed on one after
/// another, as the host meant them: all at once they would overrun the meter.
void Rig::listen() {
  const auto bytes = link_.receive();
  double rig_s = options_.pace == Pace::kReal ? arrival_s() : mcu_.now_s();
  for (auto begin = bytes.begin(); begin != bytes.end();) {
    const auto delimiter = std::find(begin, bytes.end(), 0);
    const auto end = delimiter == bytes.end() ? delimiter : delimiter + 1;
    if (!arrivals_.empty()) rig_s = std::max(rig_s, arrivals_.back().rig_s + kCommandGap_s);
    arrivals_.push_back({rig_s, {begin, end}});
    begin = end;
  }
  for (; !arrivals_.empty() && arrivals_.front().rig_s <= mcu_.now_s() + kTick_s;
       arrivals_.pop_front()) {
    uart_.feed(arrivals_.front().bytes.data(), arrivals_.front().bytes.size());
    prompt_until_s_ = mcu_.now_s() + kPrompt_s;
  }
}

/// The rig time of this moment.
double Rig::arrival_s() const {
  const std::int64_t delay_ns = live_ ? std::llround(options_.delay_s * 1e9) : 0;
  const std::int64_t boot_ns = live_ ? boot_board_ns_ : boot_host_ns_;
  return static_cast<double>(monotonic_ns() - delay_ns - boot_ns) * 1e-9;
}

/// The time by which --reset-at and similar options count: profile time, in live mode since
/// start-up.
double Rig::event_s() const {
  return live_ ? mcu_.now_s() : bench_.board().profile_s(mcu_.now_s());
}

void Rig::play_faults(const volatile std::sig_atomic_t& stop) {
  if (comes_due(options_.reset_at_s, event_s(), reset_done_)) mcu_.reset_brown_out();
  if (comes_due(options_.hang_at_s, event_s(), hang_done_)) mcu_.hang();
  if (options_.hold_sda && !hold_done_ && event_s() >= options_.hold_sda->at_s) hold_data();
  if (comes_due(options_.unplug_at_s, event_s(), unplug_done_)) {
    // The host may lag behind the rig: it still gets what was sent while the cable was connected.
    drain(stop);
    link_.unplug();
  }
  if (options_.sensor_fail_at_s && event_s() >= *options_.sensor_fail_at_s)
    twi_.detach(options_.sensors.front().address);
  const auto& absences = options_.sensor_away;
  twi_.ignore(std::any_of(absences.begin(), absences.end(),
                          [now_s = event_s()](const auto& one) {
                            return now_s >= one.at_s && now_s < one.at_s + one.for_s;
                          })
                  ? std::optional(options_.sensors.front().address)
                  : std::nullopt);
}

double Rig::truth_end_s(bool interrupted) const {
  const double reached_s = bench_.board().profile_s(mcu_.now_s());
  if (live_) return reached_s;
  return interrupted ? std::min(reached_s, file_profile_.last_s()) : file_profile_.last_s();
}

nlohmann::ordered_json Rig::link_json() const {
  return {{"bytes_sent", uart_.sent()},
          {"bytes_dropped", host_port_.dropped()},
          {"bytes_discarded", link_.discarded()},
          {"bytes_received", uart_.received()},
          {"receive_overruns", uart_.overruns()}};
}

nlohmann::ordered_json Rig::mcu_json() const {
  return {
      {"clock_hz", mcu_.clock_hz()}, {"profile_start_s", live_ ? 0.0 : bench_.board().start_s()},
      {"run_s", mcu_.now_s()},       {"i2c_busy_s", mcu_.time_s(twi_.bus_cycles())},
      {"resets", mcu_.resets()},     {"edge_cycles", edge_cycles_}};
}

void Rig::write_truth(bool interrupted) {
  const bool started = truth_.has_value();
  if (!started) truth_.emplace(live_ ? feed_.profile() : file_profile_);
  auto truth = truth_->to_json(started ? truth_end_s(interrupted) : 0);
  truth["simulated"] = true;
  truth["interrupted"] = interrupted;
  const auto sensors = bench_.to_json();
  truth["sensor"] = sensors.front();
  truth["sensors"] = sensors;
  truth["link"] = link_json();
  truth["mcu"] = mcu_json();
  if (live_) {
    truth["boot_board_ns"] = boot_board_ns_;
    truth["late_rows"] = feed_.late_rows();
  }
  if (feed_.late_rows() > 0)
    std::fprintf(stderr,
                 "rig-sim: %llu rows of the live input came after their time was simulated and "
                 "were left out: raise --delay-ms\n",
                 static_cast<unsigned long long>(feed_.late_rows()));
  write_json(truth, options_.truth);
  if (course_ && started) course_->finish(truth_end_s(interrupted));
}

}  // namespace opjoule::rig
