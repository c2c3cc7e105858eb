"""INA238: TI data sheet SLYS025A; docs/reference/sensors.md lists the checked facts."""

from dataclasses import replace
from typing import Final

from opjoule.meters.chips.chip import ShuntRange
from opjoule.meters.chips.ina228 import INA228

END: Final = 32_767

INA238: Final = replace(  # the registers and times of an INA228 with codes of 16 bit
    INA228,
    name="INA238",
    ranges=(ShuntRange(1, 40.96e-3, 1.25e-6, 5e-6, END), ShuntRange(0, 163.84e-3, 5e-6, 5e-6, END)),
    bus_step_v=3.125e-3,
    bus_end=END,
    gain_error_max=0.001,
    bus_gain_error_max=0.001,
    bus_offset_max_v=5e-3,
)
