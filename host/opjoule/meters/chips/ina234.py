"""INA234: TI data sheet SBOS844C; docs/reference/sensors.md lists the checked facts."""

from dataclasses import replace
from typing import Final

from opjoule.meters.chips.chip import ShuntRange
from opjoule.meters.chips.ina226 import INA226

_END: Final = 2047  # 8.1.1: 12 bit with sign
_OFFSET_V: Final = 100e-6  # 6.5

INA234: Final = replace(  # the registers and times of an INA226; its own times may be 5 % off (6.5)
    INA226,
    name="INA234",
    ranges=(  # ADCRANGE (table 7-4); steps: 6.5
        ShuntRange(1, 20.48e-3, 10e-6, _OFFSET_V, _END),
        ShuntRange(0, 81.92e-3, 40e-6, _OFFSET_V, _END),
    ),
    bus_step_v=25.6e-3,  # 6.5
    bus_end=_END,
    gain_error_max=0.005,  # 7.3.1
    bus_gain_error_max=0.005,  # assumed equal to the shunt voltage's
    bus_offset_max_v=15e-3,  # 6.5
    note="",
)
