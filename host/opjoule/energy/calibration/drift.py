"""Drift of a sensor since its calibration, from a comparison with new points.

Errors of the reference occur in both calibration and comparison and cancel; even a coarse reference thus shows a small
drift.
Source: JCGM 100:2008, F.1.2.3; the normalised error |d| / U(d) as in ISO/IEC 17043, B.3.1.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.energy.calibration.fitting import ReferencePoint
from opjoule.energy.calibration.line_fit import LinePoint
from opjoule.energy.calibration.reference import Reference
from opjoule.energy.sensor_calibration import Correction, SensorCalibration


@dataclass(frozen=True)
class Deviation:
    """One quantity of one point: corrected reading minus reference."""

    quantity: str
    """current or voltage"""
    unit: str
    at: float
    """the reference's value"""
    value: float
    u: float
    """Expanded uncertainty (k = 2) of the deviation, if nothing has drifted."""
    claimed: float
    """Allowance of the calibration for temperature, expanded (k = 2)."""

    @property
    def has_drifted(self) -> bool:
        """Whether the deviation is larger than the calibration allows."""
        return abs(self.value) > math.hypot(self.u, self.claimed)


def deviations(
    points: Sequence[ReferencePoint], reference: Reference, calibration: SensorCalibration
) -> list[Deviation]:
    """Deviation of each point from the calibration, first the currents, then the voltages."""
    of_points = [_deviation("current", "A", calibration, reference, point.current) for point in points]
    voltages = [point.voltage for point in points if point.voltage] if calibration.voltage else []
    return of_points + [_deviation("voltage", "V", calibration, reference, voltage) for voltage in voltages]


def _deviation(
    quantity: str, unit: str, calibration: SensorCalibration, reference: Reference, point: LinePoint
) -> Deviation:
    of_current = quantity == "current"
    correction = calibration.current if of_current else calibration.voltage or Correction()
    warmth_a2 = point.warmth_a2 or calibration.steady_warmth_a2(point.reading)
    hotter = 1.0 + calibration.heating.per_a2 * warmth_a2 if of_current else 1.0
    sensitivity = np.array([0.0, point.reading, 0.0, 1.0, 0.0])
    if of_current:
        sensitivity = calibration.sensitivity(point.reading, warmth_a2)
    left = {name: part for name, (_, part) in calibration.contributions(sensitivity).items()}
    for error in reference.common:
        share, fixed = error.voltage_share, error.voltage_v
        if of_current:
            share, fixed = error.current_share, error.current_a
        left[error.name] = left.get(error.name, 0.0) - share * point.reference - fixed
    u = math.hypot(correction.gain * point.reading_u, point.reference_u, *left.values())
    return Deviation(
        quantity,
        unit,
        at=point.reference,
        value=correction(point.reading) / hotter - point.reference,
        u=COVERAGE_FACTOR * u,
        claimed=COVERAGE_FACTOR * calibration.gain_drift_u * abs(point.reference) if of_current else 0.0,
    )
