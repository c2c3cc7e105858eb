// The rig as a whole: microcontroller, sensor, sync line and serial port, run against a profile or
// a live input.
#pragma once

#include <csignal>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "link/grant.h"
#include "link/host_port.h"
#include "link/live_input.h"
#include "link/pty_link.h"
#include "mcu/bus_log.h"
#include "mcu/mcu.h"
#include "mcu/sync_input.h"
#include "mcu/twi.h"
#include "mcu/uart.h"
#include "options.h"
#include "sensor_bench.h"
#include "signal/course.h"
#include "signal/live_feed.h"
#include "signal/sync_edges.h"
#include "signal/truth.h"

namespace opjoule::rig {

/// Times: rig_s is true time since the microcontroller started. board_ns is CLOCK_MONOTONIC of this
/// computer, which a live input is stamped with.
class Rig {
 public:
  /// Reads the files, loads the firmware and makes the port. Throws RigError.
  explicit Rig(const Options& options);

  const std::string& port() const { return link_.slave_path(); }

  /// Waits for the host, then plays to the end, or until `stop` (a signal's number) is set; writes
  /// the truth either way. Returns the exit code. Throws RigError, after writing the truth so far.
  int run(const volatile std::sig_atomic_t& stop);

 private:
  bool wait_for_host(const volatile std::sig_atomic_t& stop);
  void boot();
  void send_garbage();
  void hold_data();
  void start_profile(double rig_s);
  void finish_frame();
  void play(const volatile std::sig_atomic_t& stop);
  void step(const volatile std::sig_atomic_t& stop);
  void await_time(double slice_s, const volatile std::sig_atomic_t& stop);
  void tell_host(bool sent, const volatile std::sig_atomic_t& stop);
  void drain(const volatile std::sig_atomic_t& stop);
  double allowed_s() const;
  double live_allowed_s() const;
  bool ended() const;
  void take_live();
  void feed_live_edges();
  void start_live();
  void play_faults(const volatile std::sig_atomic_t& stop);
  void listen();
  double arrival_s() const;
  void edge_played(std::uint64_t cycle);
  nlohmann::ordered_json link_json() const;
  nlohmann::ordered_json mcu_json() const;
  void write_truth(bool interrupted);
  double event_s() const;
  double truth_end_s(bool interrupted) const;

  const Options options_;
  Profile file_profile_;
  std::deque<SyncEdge> file_edges_;
  LiveFeed feed_;
  std::optional<LiveInput> live_;
  std::optional<Course> course_;
  std::optional<Grant> grant_;
  Mcu mcu_;
  PtyLink link_;
  HostPort host_port_;
  Uart uart_;
  Twi twi_;
  SyncInput sync_;
  SensorBench bench_;
  std::optional<BusLog> bus_log_;
  std::optional<Truth> truth_;
  std::deque<double> edge_times_s_;  // exact profile times of edges given to sync_
  std::vector<std::uint64_t> edge_cycles_;
  // when the microcontroller started, on this computer's clock or that of --grant
  std::int64_t boot_host_ns_ = 0;
  std::int64_t boot_board_ns_ = 0;  // the same in live mode, on the input's time axis
  struct Arrival {
    double rig_s;  ///< when it reached the port
    std::vector<std::uint8_t> bytes;
  };
  std::deque<Arrival> arrivals_;  ///< from the host, not yet seen by the UART
  double prompt_until_s_ = 0;     // rig time until which replies are handed on without delay
  bool booted_ = false;
  bool reset_done_ = false, unplug_done_ = false, hold_done_ = false, hang_done_ = false;
  std::mt19937_64 garbage_;
};

}  // namespace opjoule::rig
