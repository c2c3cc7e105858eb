// Shunt, bus and temperature converted in turn, several rounds averaged into one result: what
// INA226 and INA228 have in common.
#pragma once

#include <functional>

#include "sensors/converter.h"
#include "sensors/imperfections.h"
#include "sensors/sample_count.h"
#include "signal/supply.h"

namespace opjoule::rig {

/// Steps and range of a channel's codes.
struct ChannelScale {
  double step_v;
  long lowest, highest;
};

/// Each round converts the channels one after the other; after the last round the means become the
/// results. The supply must outlive this object.
class AveragedChannels {
 public:
  struct Plan {
    double shunt_s = 0;  ///< nominal time of one conversion; 0: not converted
    double bus_s = 0;
    double temperature_s = 0;
    int averages = 1;
    bool continuous = true;
    ChannelScale shunt{}, bus{};

    double round_s() const { return shunt_s + bus_s + temperature_s; }
  };

  AveragedChannels(const Supply& supply, const Imperfections& imperfections, std::uint64_t seed);

  /// Called after each conversion of the shunt (the bus) with its code, before any averaging.
  std::function<void(long code)> on_shunt, on_bus;
  /// Called when new results are there; the ready flag is set by then.
  std::function<void()> on_results;

  /// Drops the rounds under way and starts anew at `start_s`.
  void restart(const Plan& plan, double start_s);
  void advance(double now_s) { converter_.advance(now_s); }

  const Plan& plan() const { return plan_; }
  long shunt_code() const { return shunt_code_; }
  long bus_code() const { return bus_code_; }
  /// Time of the next end of a conversion [s]; infinity when idle.
  double next_end_s() const;

  /// The conversion ready flag.
  bool ready() const { return ready_; }
  /// Reads and clears it. One that is not set counts as a poll.
  bool take_ready();
  void clear_ready() { ready_ = false; }

  /// Counts of conversions, reads and polls, a JSON object.
  nlohmann::ordered_json counts() const;

  SampleCount shunt_count, bus_count;

 private:
  void ended(const ConversionStep& step, double start_s, double end_s, bool last);
  void finish_round();
  long mean(double sum) const;

  const Supply& supply_;
  const Imperfections imperfections_;
  ShuntPath shunt_path_;
  Converter converter_;
  Plan plan_;
  int rounds_ = 0;
  double shunt_sum_ = 0, bus_sum_ = 0;
  long shunt_code_ = 0, bus_code_ = 0;
  bool ready_ = false;
  std::uint64_t polls_not_ready_ = 0;
};

}  // namespace opjoule::rig
