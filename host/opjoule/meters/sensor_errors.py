"""Error bounds of the sensor chips as delivered, each from its data sheet."""

from dataclasses import dataclass, replace
from typing import Final

from opjoule.energy.sensor import SensorModel as ErrorBounds
from opjoule.energy.sensor import ina219_breakout
from opjoule.meters.messages import SensorModel
from opjoule.meters.sensors import ConversionTimes, SensorSettings, Shunt, chip_scale, range_max_v

SUPPLY_LEAST_V: Final = 4.75
"""Least voltage of a 5 V supply: an offset of the bus voltage counts there as a relative error."""


@dataclass(frozen=True)
class _Chip:
    gain_error_max: float
    offset_v_max: float
    bus_gain_error_max: float
    bus_offset_v_max: float


_CHIPS: Final = {
    SensorModel.INA226: _Chip(0.001, 10e-6, 0.001, 7.5e-3),  # SBOS547B, 5.5
    # SLYS021A, page 1 (shunt); of the bus voltage the bounds of the INA238, its lesser sister, are taken.
    SensorModel.INA228: _Chip(0.0005, 1e-6, 0.001, 5e-3),
}


def error_bounds(
    model: SensorModel, settings: SensorSettings, times: ConversionTimes, shunt: Shunt
) -> ErrorBounds:
    """Bounds for an uncalibrated chip on this shunt, with these settings read so often."""
    current_max_a = range_max_v(model, settings.shunt_range) / shunt.ohm
    if model not in _CHIPS:
        return replace(
            ina219_breakout(seen_fraction=times.seen_fraction, pga=1 << settings.shunt_range),
            shunt_ohm=shunt.ohm,
            shunt_tolerance=shunt.tolerance,
            shunt_from=shunt.origin,
            current_max_a=current_max_a,
        )
    chip, scale = _CHIPS[model], chip_scale(model, shunt.ohm, settings.shunt_range)
    return ErrorBounds(
        shunt_ohm=shunt.ohm,
        shunt_tolerance=shunt.tolerance,
        shunt_from=shunt.origin,
        gain_error_max=chip.gain_error_max,
        offset_v_max=chip.offset_v_max,
        shunt_lsb_v=scale.shunt_lsb_v,
        bus_lsb_v=scale.bus_lsb_v,
        bus_gain_error_max=chip.bus_gain_error_max + chip.bus_offset_v_max / SUPPLY_LEAST_V,
        current_max_a=current_max_a,
        seen_fraction=times.seen_fraction,
    )
