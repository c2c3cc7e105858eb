"""Errors that one sensor makes in everything it measures: gain and offset, source by source, with their sign.

Two figures of one sensor share these sources, so that only the difference of their contributions counts in a
comparison (`opjoule.energy.comparison`); marginal energy is such a difference within one run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from opjoule.energy.error_bounds import SQRT3, VOLTAGE, ErrorBounds
from opjoule.energy.sensor_calibration import Correction, SensorCalibration


@dataclass(frozen=True)
class Systematic:
    """Contributions to one figure, in its unit: one standard uncertainty of each source, with sign; independent."""

    gain: Mapping[str, float]
    offset: Mapping[str, float]
    drift_u: float = 0.0
    """Standard uncertainty of the gain since the calibration, of this figure alone."""
    sensor_known: bool = False
    """The sources have names that no other sensor's have."""

    @property
    def gain_u(self) -> float:
        """Standard uncertainty from every gain."""
        return math.hypot(self.drift_u, *self.gain.values())

    @property
    def offset_u(self) -> float:
        """Standard uncertainty from every offset."""
        return math.hypot(*self.offset.values())

    @property
    def shared(self) -> Mapping[str, float]:
        """What another figure may have in common with this one; empty where the sensor is not known."""
        return {**self.gain, **self.offset} if self.sensor_known else {}


def systematic(sensor: ErrorBounds, energy_j: float, voltage_time_vs: float, charge_c: float) -> Systematic:
    """What gain and offset of a sensor do to an energy, or to a difference of energies.

    Args:
        energy_j, voltage_time_vs, charge_c: integrals of power [J], voltage [V s] and current [C], corrected; of a
            difference their differences. Divided by a time they give a power's.
    """
    calibration = sensor.calibration
    if calibration is None:
        return _as_delivered(sensor, energy_j, voltage_time_vs, charge_c)
    found = calibration.contributions(_sensitivity(calibration, energy_j, voltage_time_vs, charge_c))
    gain = {name: each for name, (is_gain, each) in found.items() if is_gain}
    if calibration.voltage is None:
        gain |= _voltage_as_delivered(sensor, energy_j, charge_c)
    return Systematic(
        gain,
        {name: each for name, (is_gain, each) in found.items() if not is_gain},
        drift_u=abs(energy_j) * calibration.gain_drift_u,
        sensor_known=True,
    )


def _sensitivity(
    calibration: SensorCalibration, energy_j: float, voltage_time_vs: float, charge_c: float
) -> np.ndarray:
    """Change of the energy with each parameter, shape (4,): of a gain the reading's share of the value."""
    current, voltage = calibration.current, calibration.voltage or Correction()
    return np.array(
        [
            (energy_j - current.offset * voltage_time_vs) / current.gain,
            (energy_j - voltage.offset * charge_c) / voltage.gain,
            voltage_time_vs,
            charge_c,
        ]
    )


def _as_delivered(
    sensor: ErrorBounds, energy_j: float, voltage_time_vs: float, charge_c: float
) -> Systematic:
    of_current = {
        f"{sensor.sensor_id}: {source}": energy_j * bound / SQRT3
        for source, bound in sensor.gain_errors_max.items()
        if source != VOLTAGE
    }
    gain = of_current | _voltage_as_delivered(sensor, energy_j, charge_c)
    offset = {f"{sensor.sensor_id}: offset": voltage_time_vs * sensor.current_offset_u_a}
    return Systematic(gain, offset, sensor_known=bool(sensor.sensor_id))


def _voltage_as_delivered(sensor: ErrorBounds, energy_j: float, charge_c: float) -> dict[str, float]:
    return {
        f"{sensor.sensor_id}: {VOLTAGE}": energy_j * sensor.voltage_gain_error_max / SQRT3,
        f"{sensor.sensor_id}: voltage codes": charge_c * sensor.voltage_rounding_u_v,
    }
