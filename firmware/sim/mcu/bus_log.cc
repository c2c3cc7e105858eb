#include "mcu/bus_log.h"

#include "errors.h"

namespace opjoule::rig {

BusLog::BusLog(Twi& twi, const std::string& path) : file_(path) {
  if (!file_) throw RigError("cannot write " + path + ": check the folder of --bus-log");
  file_ << "start_cycle,end_cycle,action,byte\n";
  twi.on_action = [this](const Twi::Action& action) {
    file_ << action.start_cycle << ',' << action.end_cycle << ',' << action.name << ','
          << static_cast<unsigned>(action.byte) << '\n';
  };
}

}  // namespace opjoule::rig
