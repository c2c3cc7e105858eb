// The sensors on the rig's I2C bus, each with the current and voltage it sees.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mcu/alert_input.h"
#include "mcu/twi.h"
#include "options.h"
#include "signal/supply.h"

namespace opjoule::rig {

class SensorBench {
 public:
  /// `board` is what sensors without a profile of their own see; it must outlive this object, as
  /// the others must. Throws RigError when a sensor's profile cannot be read.
  SensorBench(Mcu& mcu, Twi& twi, const Profile& board, const Options& options);

  /// The board's supply as the first sensor without a profile of its own sees it.
  const Supply& board() const { return board_; }

  /// Places time 0 of all profiles at this rig time.
  void start_at(double rig_s);

  /// `call` gets the rig time at which the first result of any sensor was first read; once.
  void on_first_sample(std::function<void(double rig_s)> call);

  /// Counts of every sensor, a JSON array of objects; with the energy of its own profile if it has
  /// one.
  nlohmann::ordered_json to_json() const;

 private:
  struct Place {
    SensorChoice choice;
    Profile profile;
    std::unique_ptr<Supply> own;
    std::unique_ptr<PowerSensor> sensor;
  };
  Supply board_;
  std::vector<std::unique_ptr<Place>> places_;
  std::optional<AlertInput> alert_;
  std::ofstream conversions_;
};

}  // namespace opjoule::rig
