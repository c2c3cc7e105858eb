// Timer interrupt flags that are cleared one by one.
#pragma once

#include "mcu/mcu.h"

namespace opjoule::rig {

/// Writing a one to a flag of TIFR0 to TIFR2 clears that flag; simavr 1.6 clears the whole
/// register, so that acknowledging a capture would also clear an overflow.
void clear_timer_flags_singly(Mcu& mcu);

}  // namespace opjoule::rig
