// The one error of the rig simulator: a line for the user, thrown where it is found, printed by
// main.
#pragma once

#include <stdexcept>
#include <string>

namespace opjoule::rig {

/// Something outside the program's control: bad arguments, an unreadable file, a crashed firmware.
/// what() names the thing, its value, what was expected and what to do; main prints it as one line.
struct RigError : std::runtime_error {
  explicit RigError(const std::string& message, int code = 2)
      : std::runtime_error(message), exit_code(code) {}
  int exit_code;  ///< 2: the user's input; 1: anything else
};

}  // namespace opjoule::rig
