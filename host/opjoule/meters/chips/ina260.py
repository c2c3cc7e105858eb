"""INA260: TI data sheet SBOS656C; docs/reference/sensors.md lists the checked facts."""

from dataclasses import replace
from typing import Final

from opjoule.energy.error_bounds import Shunt
from opjoule.meters.chips.chip import ShuntRange
from opjoule.meters.chips.ina226 import INA226

_SHUNT_OHM: Final = 0.002
_STEP_A: Final = 1.25e-3  # 8.6.2
_MOST_A: Final = 15.0  # 7.3; the register reaches to 40.96 A
_OFFSET_A: Final = 5e-3  # page 1

INA260: Final = replace(  # the registers and times of an INA226; register 1 holds the current
    INA226,
    name="INA260",
    ranges=(ShuntRange(0, _MOST_A * _SHUNT_OHM, _STEP_A * _SHUNT_OHM, _OFFSET_A * _SHUNT_OHM, int(_MOST_A / _STEP_A)),),
    gain_error_max=0.0015,  # page 1: whole path, including its shunt
    own_shunt=Shunt(_SHUNT_OHM, 0.0, origin="inside the INA260", per_k=0.0, kelvin=True),
    copied=False,
    note="",
)
