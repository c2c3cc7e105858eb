"""What a calibration says of one sensor: how readings are corrected, and how well that is known.

    true = offset + gain * reading        of the current, and of the voltage

The four parameters are known together: their covariance comes from the fit, and a reference that is wrong by the same
share in every point moves them in step. Both are kept apart by their source, so that two energies that rest on one
calibration, or on two against one reference, can be compared without what they share (JCGM 100:2008, 5.2.2, F.1.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import numpy as np

from opjoule.trace.power_trace import Float64Array, PowerTrace

PARAMETERS: Final = ("current_gain", "voltage_gain", "current_offset_a", "voltage_offset_v")
"""Order of every vector and matrix of parameters."""
CALIBRATION: Final = "calibration"
"""How the names of its own sources begin."""
GAINS: Final = 2
"""So many of them are gains; the rest are offsets."""
OUTSIDE_SHARE_MAX: Final = 0.01
"""Most of a trace's charge that may have flowed at currents beyond what was calibrated."""
UNLIMITED: Final = 1e9
BEYOND: Final = 0.05
"""A calibrated range counts as wider by this share of its span at either end."""


Readings = TypeVar("Readings", float, Float64Array)
Row = tuple[float, float, float, float]
Matrix = tuple[Row, Row, Row, Row]
"""Covariance matrix of the four parameters, in their order."""


@dataclass(frozen=True)
class Correction:
    """From a reading to the value: offset + gain * reading, of a reading between `least` and `most`."""

    gain: float = 1.0
    offset: float = 0.0
    least: float = -UNLIMITED
    """Least reading among the calibrated points, in the unit of the reading."""
    most: float = UNLIMITED

    def __call__(self, reading: Readings) -> Readings:
        """The corrected value, or values of the same shape."""
        return self.offset + self.gain * reading

    def before(self, value: float) -> float:
        """The reading that a corrected value comes from; of an integral take `offset` times the length off first."""
        return (value - self.offset) / self.gain

    def holds(self, reading: Float64Array) -> bool:
        """Whether no reading is beyond what was calibrated; NaN is none."""
        ends = [np.fmin.reduce(reading), np.fmax.reduce(reading)] if reading.size else []
        return not self.outside(np.array(ends)).any()

    def outside(self, reading: Float64Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """True where a reading is beyond what was calibrated, and 5 % of its span; same shape."""
        margin = BEYOND * (self.most - self.least)
        return (reading < self.least - margin) | (reading > self.most + margin)


@dataclass(frozen=True)
class CommonSource:
    """One thing that a reference gets wrong in all points alike, the same in all calibrations against it."""

    name: str
    """Which reference, and what of it."""
    effect: Row
    """Change of the parameters [PARAMETERS] by one standard uncertainty of it, with sign."""


@dataclass(frozen=True)
class SensorCalibration:
    """The corrections of one sensor and their uncertainty; as they stand in a file under calibration/."""

    identity: str
    """Sensor, time and digest: no other calibration has it."""
    current: Correction = field(default_factory=Correction)
    voltage: Correction | None = field(default_factory=Correction)
    """None: the voltage was not calibrated; what the meter states of it still holds."""
    covariance: Matrix = ((0.0, 0.0, 0.0, 0.0),) * 4
    """Covariance of the parameters, shape (4, 4), by the fit alone: the reference's own error is not in it."""
    common: tuple[CommonSource, ...] = ()
    gain_drift_u: float = 0.0
    """Relative standard uncertainty of the power since then: temperature. No other run shares it."""

    def contributions(self, sensitivity: Float64Array) -> dict[str, tuple[bool, float]]:
        """What each source adds to a figure, one standard uncertainty with sign, and whether it is a gain's.

        The fit's own sources are independent combinations of the parameters (Cholesky): the gains with whatever of the
        offsets goes with them, then the rest of the offsets, which is the line's error in the middle of its points.

        Args:
            sensitivity: change of the figure with each parameter, shape (4,).
        Returns: source -> (gain, contribution in the figure's unit); the contributions are independent of each other.
        """
        found = {each.name: (True, float(sensitivity @ np.array(each.effect))) for each in self.common}
        for number, column in enumerate(_root(self.covariance).T):
            name = f"{CALIBRATION} {self.identity}: {PARAMETERS[number]}"
            found[name] = (number < GAINS, float(sensitivity @ column))
        return found

    def voltage_u_v(self, voltage_v: float) -> float:
        """Standard uncertainty [V] of a corrected voltage from the calibration; 0 where the voltage has none."""
        if self.voltage is None:
            return 0.0
        at = np.array([0.0, self.voltage.before(voltage_v), 0.0, 1.0])
        return math.hypot(*(each for _, each in self.contributions(at).values()))

    def power_u(self, current_a: float, voltage_v: float) -> float:
        """Relative standard uncertainty of a constant power by this calibration, its drift included."""
        voltage = self.voltage or Correction()
        read = self.current.before(current_a) / current_a, voltage.before(voltage_v) / voltage_v
        at = np.array([*read, 1.0 / current_a, 1.0 / voltage_v])
        return math.hypot(self.gain_drift_u, *(each for _, each in self.contributions(at).values()))

    def apply(self, trace: PowerTrace, *, overwrite: bool = False) -> PowerTrace:
        """The trace as it would be without the sensor's errors.

        Args:
            overwrite: in the columns of the one that is given; False: that stays as it was read.
        """
        current, voltage = self.current, self.voltage or Correction()
        return trace.corrected(
            current.gain, current.offset, voltage.gain, voltage.offset, overwrite=overwrite
        )

    def refusal(self, trace: PowerTrace) -> str:
        """Why the calibration does not hold for a trace as it was read; empty if it does.

        A straight line through points says nothing of what lies beyond them.
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


def as_matrix(rows: Sequence[Sequence[float]]) -> Matrix:
    """Rows of numbers as a matrix of the parameters. Raises: ValueError: not of shape (4, 4)."""
    if [len(row) for row in rows] != [len(PARAMETERS)] * len(PARAMETERS):
        raise ValueError("its covariance is not of shape 4 x 4")
    (a, b, c, d), (e, f, g, h), (i, j, k, m), (n, o, p, q) = rows
    return (a, b, c, d), (e, f, g, h), (i, j, k, m), (n, o, p, q)


def _root(covariance: Matrix) -> Float64Array:
    """Lower triangle L with L L^T = covariance; parameters of variance 0 are exact. Shape (4, 4)."""
    matrix = np.array(covariance)
    known = np.flatnonzero(np.diag(matrix) > 0)
    root = np.zeros_like(matrix)
    if known.size:
        scale = np.sqrt(np.diag(matrix)[known])
        correlation = matrix[np.ix_(known, known)] / np.outer(scale, scale)
        root[np.ix_(known, known)] = scale[:, None] * np.linalg.cholesky(correlation)
    return root
