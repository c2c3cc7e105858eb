"""Systematic errors of a sensor: gain and offset, source by source, with their sign.

Two figures of one sensor share these sources, so that only the difference of their contributions counts in a
comparison (`opjoule.energy.comparison`); marginal energy is such a difference within one run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field

import numpy as np

from opjoule.base.coverage import RECTANGULAR, excess_kurtosis
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import HEAT, SQRT3, VOLTAGE, WIRE, ErrorBounds
from opjoule.energy.sensor_calibration import CALIBRATION, PARAMETERS, Correction, SensorCalibration
from opjoule.energy.shunt_heat import heat_integral

_BOW = PARAMETERS[-1]


@dataclass(frozen=True)
class Integrals:
    """Factors of a sensor's errors: integrals over a window, differences of two windows, or means."""

    energy_j: float
    voltage_time_vs: float
    """Integral of the voltage: factor of a current offset."""
    charge_c: float
    """Integral of the current: factor of a voltage offset."""
    square_a2s: float = 0.0
    """Integral of the current's square: factor of a wire's resistance."""
    heat_ja2: float = 0.0
    """Integral of power times the shunt's warmth: factor of its self-heating."""
    later_heat_ja2: float = 0.0
    """Change of `heat_ja2` with the logarithm of the thermal time constant."""

    @classmethod
    def between(cls, cells: Cells, start_ns: int, end_ns: int, rate: float, sensor: ErrorBounds) -> Integrals:
        """Integrals over a window [meter_ns] whose seconds are `rate` times those of the meter."""

        def over(name: str) -> float:
            return float(getattr(cells, name).between(start_ns, end_ns)) * rate

        plain = over("power"), over("voltage"), over("current")
        square = over("square") if sensor.wire_max_ohm else 0.0
        if not sensor.heats:
            return cls(*plain, square)
        heating = sensor.heating
        spread = math.exp(heating.ln_tau_u) if heating.per_a2 and heating.ln_tau_u else 1.0
        heat, early, late = (
            float(heat_integral(cells, heating.tau_s * factor).between(start_ns, end_ns)) * rate
            for factor in (1.0, 1.0 / spread, spread)
        )
        return cls(*plain, square, heat, (late - early) / 2.0 / (heating.ln_tau_u or 1.0))

    def less(self, other: Integrals, times: float) -> Integrals:
        """These integrals less `times` another's."""
        return Integrals(*(a - times * b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def scale(self, factor: float) -> Integrals:
        """All integrals times an exact factor."""
        return Integrals(*(factor * part for part in astuple(self)))


@dataclass(frozen=True)
class Systematic:
    """Contributions to one figure, in its unit: one standard uncertainty of each source, with sign; independent."""

    gain: Mapping[str, float]
    offset: Mapping[str, float]
    heating: Mapping[str, float] = field(default_factory=dict)
    """Contributions of the shunt's self-heating."""
    wire: Mapping[str, float] = field(default_factory=dict)
    """Contributions of the wire between the sense point and the board."""
    bounded: bool = False
    """Whether only bounds are known of each source (rectangular, as delivered)."""
    drift_u: float = 0.0
    """Standard uncertainty from the gain's drift since the calibration; independent for each figure."""
    sensor_known: bool = False
    """Whether the sources' names are unique to this sensor."""

    @property
    def gain_u(self) -> float:
        """Standard uncertainty from every gain."""
        return math.hypot(self.drift_u, *self.gain.values())

    @property
    def offset_u(self) -> float:
        """Standard uncertainty from every offset."""
        return math.hypot(*self.offset.values())

    @property
    def parts(self) -> dict[str, float]:
        """Standard uncertainties by part of the budget."""
        heating_u, wire_u = math.hypot(*self.heating.values()), math.hypot(*self.wire.values())
        return {"gain": self.gain_u, "offset": self.offset_u, "heating": heating_u, "wire": wire_u}

    @property
    def excess(self) -> dict[str, float]:
        """Excess kurtosis by part of the budget."""
        names = ("gain", "offset", "heating", "wire") if self.bounded else ("wire",)
        parts = {name: getattr(self, name).values() for name in names}
        return {name: excess_kurtosis((u, RECTANGULAR) for u in part) for name, part in parts.items()}

    @property
    def shared(self) -> Mapping[str, float]:
        """Contributions that other figures may share; empty if the sensor is unknown."""
        everything = {**self.gain, **self.offset, **self.heating, **self.wire}
        return everything if self.sensor_known else {}


def systematic(sensor: ErrorBounds, integrals: Integrals) -> Systematic:
    """Contributions of a sensor's systematic errors to an energy, or to a difference of energies.

    Corrected integrals, or differences of two, divided by a time give a power's errors.
    """
    wire = {}
    if sensor.wire_max_ohm:
        wire = {f"{sensor.sensor_id}: {WIRE}": -integrals.square_a2s * sensor.wire_max_ohm / SQRT3}
    calibration = sensor.calibration
    if calibration is None:
        return _as_delivered(sensor, integrals, wire)
    sources = calibration.contributions(_sensitivity(calibration, integrals))
    bow = f"{CALIBRATION} {calibration.identity}: {_BOW}"
    heating = {bow: sources.pop(bow)[1]} if bow in sources else {}
    if calibration.heats:
        shape = calibration.heating
        change_j = -shape.per_a2 * integrals.later_heat_ja2 * shape.ln_tau_u
        heating[f"{CALIBRATION} {calibration.identity}: thermal time constant"] = change_j
    gain = {name: part for name, (is_gain, part) in sources.items() if is_gain}
    if calibration.voltage is None:
        gain |= _voltage_as_delivered(sensor, integrals)
    return Systematic(
        gain,
        {name: part for name, (is_gain, part) in sources.items() if not is_gain},
        heating,
        wire,
        drift_u=abs(integrals.energy_j) * calibration.gain_drift_u,
        sensor_known=True,
    )


def _sensitivity(calibration: SensorCalibration, integrals: Integrals) -> np.ndarray:
    """Change of the energy with each parameter, shape (5,); for a gain, the reading's share of the value."""
    current, voltage = calibration.current, calibration.voltage or Correction()
    return np.array(
        [
            (integrals.energy_j - current.offset * integrals.voltage_time_vs) / current.gain,
            (integrals.energy_j - voltage.offset * integrals.charge_c) / voltage.gain,
            integrals.voltage_time_vs,
            integrals.charge_c,
            -integrals.heat_ja2,
        ]
    )


def _as_delivered(sensor: ErrorBounds, integrals: Integrals, wire: Mapping[str, float]) -> Systematic:
    of_current = {
        f"{sensor.sensor_id}: {source}": integrals.energy_j * bound / SQRT3
        for source, bound in sensor.gain_errors_max.items()
        if source != VOLTAGE
    }
    gain = of_current | _voltage_as_delivered(sensor, integrals)
    offset = {f"{sensor.sensor_id}: offset": integrals.voltage_time_vs * sensor.current_offset_u_a}
    heating = {}
    if sensor.heating_max_per_a2:
        heating = {f"{sensor.sensor_id}: {HEAT}": -integrals.heat_ja2 * sensor.heating_max_per_a2 / SQRT3}
    return Systematic(gain, offset, heating, wire, bounded=True, sensor_known=bool(sensor.sensor_id))


def _voltage_as_delivered(sensor: ErrorBounds, integrals: Integrals) -> dict[str, float]:
    return {
        f"{sensor.sensor_id}: {VOLTAGE}": integrals.energy_j * sensor.voltage_gain_error_max / SQRT3,
        f"{sensor.sensor_id}: voltage codes": integrals.charge_c * sensor.voltage_rounding_u_v,
    }
