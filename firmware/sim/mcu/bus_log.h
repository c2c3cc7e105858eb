// Everything that the I2C bus did, as a CSV file.
#pragma once

#include <fstream>
#include <string>

#include "mcu/twi.h"

namespace opjoule::rig {

class BusLog {
 public:
  /// Writes what `twi` does from now on to `path`; must not outlive it. Throws RigError when the
  /// file cannot be written.
  BusLog(Twi& twi, const std::string& path);

 private:
  std::ofstream file_;
};

}  // namespace opjoule::rig
