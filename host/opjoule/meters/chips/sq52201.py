"""Silergy SQ52201, sold on modules as "INA226"; its maker's data sheet is not public."""

from dataclasses import replace
from typing import Final

from opjoule.meters.chips.ina226 import INA226

BUS_ERROR_MAX: Final = 0.055
"""Modules sold as INA226 read the voltage 1.4 to 5.3 % high, but not the current.

Source: github.com/RobTillaart/INA226, issue 30; github.com/Zanduino/INA, issue 45.
"""
CURRENT_ERROR_MAX: Final = 0.01
"""Assumed: ten times the INA226's; users report no error of the current."""

SQ52201: Final = replace(
    INA226,
    name="SQ52201",
    gain_error_max=CURRENT_ERROR_MAX,
    bus_gain_error_max=BUS_ERROR_MAX,
    note="the sensor is not an INA226 but Silergy's SQ52201: users found its voltage up to 5.3 % high; the uncertainty "
    "includes this until the sensor is calibrated (docs/how-to/calibrate.md)",
)
