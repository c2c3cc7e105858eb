"""Error bounds of the sensor chips as delivered, each from its data sheet."""

from dataclasses import dataclass
from typing import Final

from opjoule.energy.sensor import SensorModel as ErrorBounds
from opjoule.energy.sensor import ina219_breakout
from opjoule.meters.messages import SensorModel
from opjoule.meters.sensors import SHUNT_OHM_DEFAULT, STEPS_V, ConversionTimes, SensorSettings

SHUNT_TOLERANCE: Final = 0.01
SUPPLY_LEAST_V: Final = 4.75
"""Least voltage of a 5 V supply: an offset of the bus voltage counts there as a relative error."""


@dataclass(frozen=True)
class _Chip:
    gain_error_max: float
    offset_v_max: float
    bus_gain_error_max: float
    bus_offset_v_max: float
    shunt_max_v: float


_CHIPS: Final = {
    SensorModel.INA226: _Chip(0.001, 10e-6, 0.001, 7.5e-3, 81.92e-3),  # SBOS547B, 5.5
    # SLYS021A, page 1 (shunt); of the bus voltage the bounds of the INA238, its lesser sister, are taken.
    SensorModel.INA228: _Chip(0.0005, 1e-6, 0.001, 5e-3, 163.84e-3),
}


def error_bounds(model: SensorModel, settings: SensorSettings, times: ConversionTimes) -> ErrorBounds:
    """Bounds for an uncalibrated chip on the common breakout (0.1 ohm, 1 %), with these settings read so often."""
    seen = times.seen_fraction
    if model not in _CHIPS:
        return ina219_breakout(seen_fraction=seen, pga=1 << settings.shunt_range)
    chip = _CHIPS[model]
    shunt_lsb_v, bus_lsb_v = STEPS_V[model]
    return ErrorBounds(
        shunt_ohm=SHUNT_OHM_DEFAULT,
        shunt_tolerance=SHUNT_TOLERANCE,
        gain_error_max=chip.gain_error_max,
        offset_v_max=chip.offset_v_max,
        shunt_lsb_v=shunt_lsb_v,
        bus_lsb_v=bus_lsb_v,
        bus_gain_error_max=chip.bus_gain_error_max + chip.bus_offset_v_max / SUPPLY_LEAST_V,
        current_max_a=chip.shunt_max_v / SHUNT_OHM_DEFAULT,
        seen_fraction=seen,
    )
