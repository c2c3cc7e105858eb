"""Calibration of one sensor: the correction of its readings and its uncertainty.

    true = (offset + gain * reading) / (1 + heating * warmth)        for the current
    true = offset + gain * reading                                   for the voltage

`opjoule.energy.shunt_heat` defines warmth. The five parameters are correlated: the fit gives their covariance, and a
reference with the same relative error in every point moves them together. The two are kept apart by source. Two
energies from one calibration, or from two against one reference, can then be compared without the common errors
(JCGM 100:2008, 5.2.2, F.1.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from opjoule.energy.shunt_heat import Heating, warmth
from opjoule.energy.trace.power_trace import Float64Array, PowerTrace

PARAMETERS: Final = ("current_gain", "voltage_gain", "current_offset_a", "voltage_offset_v", "heating_per_a2")
"""Order of every vector and matrix of parameters. Without the last, heating is 0: an older calibration."""
CALIBRATION: Final = "calibration"
"""Prefix of the names of the fit's own sources."""
_OFFSETS: Final = (2, 3)
"""Indices of the offsets."""
HEATING_PLACE: Final = 4
OUTSIDE_SHARE_MAX: Final = 0.01
"""Largest share of a trace's charge that may have flowed at currents outside the calibrated range."""
UNLIMITED: Final = 1e9
BEYOND: Final = 0.05
"""Extension of a calibrated range at either end, as a share of its span."""


Readings = TypeVar("Readings", float, Float64Array)
Row = tuple[float, ...]
Matrix = tuple[Row, ...]
"""Covariance matrix of the parameters, in their order."""


@dataclass(frozen=True)
class Correction:
    """Correction of a reading: offset + gain * reading, for a reading between `least` and `most`."""

    gain: float = 1.0
    offset: float = 0.0
    least: float = -UNLIMITED
    """Least reading among the calibrated points, in the unit of the reading."""
    most: float = UNLIMITED

    def __call__(self, reading: Readings) -> Readings:
        """The corrected value, or values of the same shape."""
        return self.offset + self.gain * reading

    def before(self, value: float) -> float:
        """The reading that gives a corrected value; for an integral, subtract `offset` times the duration first."""
        return (value - self.offset) / self.gain

    def holds(self, reading: Float64Array) -> bool:
        """Whether no reading is outside the calibrated range; NaN counts as inside."""
        ends = [np.fmin.reduce(reading), np.fmax.reduce(reading)] if reading.size else []
        return not self.outside(np.array(ends)).any()

    def outside(self, reading: Float64Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """True where a reading is outside the calibrated range by more than 5 % of its span; same shape."""
        margin = BEYOND * (self.most - self.least)
        return (reading < self.least - margin) | (reading > self.most + margin)


@dataclass(frozen=True)
class CommonSource:
    """A reference's error that is common to all points and to all calibrations against it."""

    name: str
    """Reference and quantity."""
    effect: Row
    """Change of the parameters [PARAMETERS] by one standard uncertainty of this source, with sign."""


@dataclass(frozen=True)
class SensorCalibration:
    """Corrections of one sensor and their uncertainty, as in a file under calibration/."""

    identity: str
    """Sensor, time and digest: unique to this calibration."""
    current: Correction = field(default_factory=Correction)
    voltage: Correction | None = field(default_factory=Correction)
    """None: the voltage was not calibrated, and the meter's stated bounds apply."""
    covariance: Matrix = ((0.0, 0.0, 0.0, 0.0),) * 4
    """Covariance of the parameters, shape (5, 5) or (4, 4), from the fit alone, without the reference's error."""
    common: tuple[CommonSource, ...] = ()
    gain_drift_u: float = 0.0
    """Relative standard uncertainty of the power from temperature changes since the calibration; not shared by runs."""
    heating: Heating = field(default_factory=Heating)
    """Self-heating of the shunt; 0 in older calibrations."""

    def __post_init__(self) -> None:
        as_matrix(self.covariance)

    @property
    def heats(self) -> bool:
        """Whether self-heating of the shunt, or its uncertainty, is in the figures."""
        known = [row[HEATING_PLACE] for row in self.covariance if len(row) > HEATING_PLACE]
        return bool(self.heating.per_a2 or any(known) or any(source.effect[4:] for source in self.common))

    def contributions(self, sensitivity: Float64Array) -> dict[str, tuple[bool, float]]:
        """Contribution of each source to a figure: one standard uncertainty with sign, and whether it is a gain's.

        The fit's own sources are independent combinations of the parameters (Cholesky): the gains with the correlated
        part of the offsets, then the rest of the offsets, which is the line's error in the middle of its points.

        `sensitivity`: change of the figure with each parameter, shape (5,).
        Returns: source -> (gain, contribution in the figure's unit); the contributions are independent of each other.
        """
        sources = {}
        for source in self.common:
            sources[source.name] = (True, float(sensitivity[: len(source.effect)] @ np.array(source.effect)))
        for number, column in enumerate(_root(self.covariance).T):
            name = f"{CALIBRATION} {self.identity}: {PARAMETERS[number]}"
            sources[name] = (number not in _OFFSETS, float(sensitivity[: column.size] @ column))
        return sources

    def sensitivity(self, reading_a: float, warmth_a2: float) -> Float64Array:
        """Change of a corrected current with each parameter, shape (5,)."""
        hotter = 1.0 + self.heating.per_a2 * warmth_a2
        value_a = self.current(reading_a) / hotter
        return np.array([reading_a, 0.0, 1.0, 0.0, -value_a * warmth_a2]) / [hotter, 1, hotter, 1, hotter]

    def steady_current_a(self, reading_a: float) -> float:
        """Corrected current of a steady reading, the shunt at the temperature of that current."""
        return self.current(reading_a) / (1.0 + self.heating.per_a2 * self.steady_warmth_a2(reading_a))

    def steady_warmth_a2(self, reading_a: float) -> float:
        """Warmth at a steady reading; a warm shunt dissipates more power."""
        return steady_warmth_a2(reading_a, self.heating.per_a2)

    def voltage_u_v(self, voltage_v: float) -> float:
        """Standard uncertainty [V] of a corrected voltage from the calibration; 0 if the voltage was not calibrated."""
        if self.voltage is None:
            return 0.0
        at = np.array([0.0, self.voltage.before(voltage_v), 0.0, 1.0, 0.0])
        return math.hypot(*(contribution for _, contribution in self.contributions(at).values()))

    def power_u(self, current_a: float, voltage_v: float) -> float:
        """Relative standard uncertainty of a constant power by this calibration, its drift included."""
        voltage = self.voltage or Correction()
        reading_a = self.current.before(current_a * (1.0 + self.heating.per_a2 * current_a**2))
        at = self.sensitivity(reading_a, self.steady_warmth_a2(reading_a)) / current_a
        at[1], at[3] = voltage.before(voltage_v) / voltage_v, 1.0 / voltage_v
        parts = (contribution for _, contribution in self.contributions(at).values())
        return math.hypot(self.gain_drift_u, *parts)

    def apply(self, trace: PowerTrace, *, overwrite: bool = False) -> PowerTrace:
        """The trace corrected for the sensor's errors; `overwrite`: in the columns of the given trace."""
        current, voltage = self.current, self.voltage or Correction()
        bows = self.heating.per_a2 != 0.0 and len(trace) > 0
        warm = warmth(trace.meter_ns, trace.current_a, self.heating) if bows else None
        line = current.gain, current.offset, voltage.gain, voltage.offset
        made = trace.corrected(*line, overwrite=overwrite)
        if warm is None:
            return made
        return made.scaled(lambda at_ns: 1.0 / (1.0 + self.heating.per_a2 * warm.at(at_ns)), overwrite=True)

    def refusal(self, trace: PowerTrace) -> str:
        """Reason why the calibration is not valid for a trace as read; empty if it is valid.

        The fitted straight line is not validated beyond its points.
        """
        if self.current.holds(trace.current_a) and (self.voltage or Correction()).holds(trace.voltage_v):
            return ""
        good = trace.good
        size_a = np.abs(trace.current_a[good])
        beyond = self.current.outside(trace.current_a[good])
        share = float(size_a[beyond].sum() / total) if (total := float(size_a.sum())) > 0 else 0.0
        if share > OUTSIDE_SHARE_MAX:
            return (
                f"{100 * share:.0f} % of the charge flowed at currents outside the calibrated "
                f"{self.current.least:.3g} to {self.current.most:.3g} A (up to {float(size_a.max()):.3g} A)"
            )
        if self.voltage and (some := self.voltage.outside(trace.voltage_v[good])).mean() > OUTSIDE_SHARE_MAX:
            volts = trace.voltage_v[good][some]
            return (
                f"{100 * float(some.mean()):.0f} % of the voltages, {float(volts.min()):.3g} to "
                f"{float(volts.max()):.3g} V, are outside the calibrated {self.voltage.least:.3g} to "
                f"{self.voltage.most:.3g} V"
            )
        return ""


def steady_warmth_a2(reading_a: float, per_a2: float) -> float:
    """Warmth at a steady reading in equilibrium: w = reading^2 / (1 + per_a2 w)."""
    hotter = (1.0 + math.sqrt(max(1.0 + 4.0 * per_a2 * reading_a**2, 0.0))) / 2.0
    return reading_a**2 / hotter


def as_matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    """Rows of numbers as a matrix of the parameters. Raises: ValueError: shape other than (5, 5) and (4, 4)."""
    if [len(row) for row in rows] not in [[size] * size for size in (HEATING_PLACE, len(PARAMETERS))]:
        raise ValueError("its covariance is not of shape 5 x 5")
    return tuple(tuple(row) for row in rows)


def _root(covariance: Matrix) -> Float64Array:
    """Lower triangle L with L L^T = covariance; parameters of variance 0 are exact."""
    matrix = np.array(covariance)
    known = np.flatnonzero(np.diag(matrix) > 0)
    root = np.zeros_like(matrix)
    if known.size:
        scale = np.sqrt(np.diag(matrix)[known])
        correlation = matrix[np.ix_(known, known)] / np.outer(scale, scale)
        root[np.ix_(known, known)] = scale[:, None] * np.linalg.cholesky(correlation)
    return root
