"""INA237: TI data sheet SBOSA20A; docs/reference/sensors.md lists the checked facts."""

from dataclasses import replace
from typing import Final

from opjoule.meters.chips.chip import ShuntRange
from opjoule.meters.chips.ina238 import END, INA238

INA237: Final = replace(  # an INA238 of a lower grade
    INA238,
    name="INA237",
    ranges=(ShuntRange(1, 40.96e-3, 1.25e-6, 50e-6, END), ShuntRange(0, 163.84e-3, 5e-6, 50e-6, END)),
    gain_error_max=0.003,
    bus_gain_error_max=0.003,
    bus_offset_max_v=20e-3,
)
