"""From points to a calibration, or one line that says which figure cannot be trusted and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.calibrating.line_fit import LineFit, LinePoint, fit_line
from opjoule.calibrating.reference import Reference
from opjoule.energy.error_bounds import SQRT3, VOLTAGE, ErrorBounds
from opjoule.energy.sensor_calibration import CommonSource, Correction, SensorCalibration, as_matrix
from opjoule.errors import DataFault

CURRENT_POINTS_MIN: Final = 4
"""A line has two parameters; what is left tells whether it is one."""
VOLTAGE_POINTS_MIN: Final = 3
SPAN_MIN: Final = 0.5
"""The least current may be at most half of the greatest, or offset and gain are not told apart."""
VOLTAGE_RANGE: Final = 0.05
"""A voltage calibrated at one place holds so far around it; its gain is then the data sheet's."""
CHANCE_MIN: Final = 1e-3
"""Points that stray so far by chance once in a thousand calibrations are not as certain as they are said to be."""


class CalibrationFault(DataFault):
    """Points that no calibration can be made of, or a calibration that does not fit what is measured."""


@dataclass(frozen=True)
class ReferencePoint:
    """One steady load: the sensor's mean reading and the reference's, with their own standard uncertainties."""

    current_a: float
    current_u_a: float
    reference_a: float
    reference_u_a: float
    voltage_v: float
    voltage_u_v: float
    reference_v: float | None = None
    reference_u_v: float = 0.0

    @property
    def current(self) -> LinePoint:
        """Its currents [A]."""
        return LinePoint(self.current_a, self.current_u_a, self.reference_a, self.reference_u_a)

    @property
    def voltage(self) -> LinePoint | None:
        """Its voltages [V]; None where the reference measured none."""
        if self.reference_v is None:
            return None
        return LinePoint(self.voltage_v, self.voltage_u_v, self.reference_v, self.reference_u_v)


@dataclass(frozen=True)
class Fitted:
    """A calibration with what the reader of its file wants to see."""

    calibration: SensorCalibration
    current: LineFit
    voltage: LineFit | None
    points: tuple[ReferencePoint, ...]
    notes: tuple[str, ...]
    """What is odd but no fault, a line each."""


def calibrate(
    points: Sequence[ReferencePoint],
    reference: Reference,
    sensor: ErrorBounds,
    identity: str,
    gain_drift_u: float = 0.0,
) -> Fitted:
    """Fits current and, where the reference has measured it, voltage.

    Args:
        sensor: as delivered: its bounds are what is known of the voltage's gain beforehand.
        gain_drift_u: relative standard uncertainty of the power for what happens after the calibration.
    Raises: CalibrationFault: too few points, points at one current, points that stray further than their
            uncertainty, or a reference that knows less than the data sheets.
    """
    current = _current(points, reference)
    voltages = [each.voltage for each in points if each.voltage]
    voltage = _voltage(voltages, reference, sensor) if voltages else None
    corrections = (
        _correction(current, [each.current_a for each in points]),
        _correction(voltage, [each.reading for each in voltages], VOLTAGE_RANGE) if voltage else None,
    )
    covariance = np.zeros((4, 4))
    covariance[np.ix_([0, 2], [0, 2])] = _widened(current)
    if voltage:
        covariance[np.ix_([1, 3], [1, 3])] = _widened(voltage)
    effects = {e.name: e.effect(corrections[0], corrections[1] or Correction()) for e in reference.common}
    if voltage is None:
        effects = {name: (each[0], 0.0, each[2], 0.0) for name, each in effects.items()}
    calibration = SensorCalibration(
        identity,
        *corrections,
        covariance=as_matrix(covariance.tolist()),
        common=tuple(CommonSource(name, each) for name, each in effects.items() if any(each)),
        gain_drift_u=gain_drift_u,
    )
    fitted = Fitted(calibration, current, voltage, tuple(points), ())
    _check_helps(fitted, sensor, reference)
    return Fitted(calibration, current, voltage, tuple(points), tuple(_notes(fitted, sensor)))


def _current(points: Sequence[ReferencePoint], reference: Reference) -> LineFit:
    if len(points) < CURRENT_POINTS_MIN:
        raise CalibrationFault(
            f"{len(points)} point(s): gain and offset of the current cannot be trusted, nor any energy by them; "
            f"at least {CURRENT_POINTS_MIN} are needed, from the idle current to above the board's peak"
        )
    currents_a = [each.reference_a for each in points]
    least_a, most_a = min(currents_a), max(currents_a)
    if most_a <= 0 or least_a > SPAN_MIN * most_a:
        raise CalibrationFault(
            f"all points lie between {least_a:.4g} and {most_a:.4g} A: they do not tell gain from offset, and "
            f"neither of them can be trusted; add points below {SPAN_MIN * most_a:.2g} A, without the load for example"
        )
    fit = fit_line([each.current for each in points])
    _check_spread(fit, "current", "A", reference)
    return fit


def _voltage(points: Sequence[LinePoint], reference: Reference, sensor: ErrorBounds) -> LineFit:
    if len(points) < VOLTAGE_POINTS_MIN:
        raise CalibrationFault(
            f"{len(points)} point(s) with a voltage: the voltage, and every energy, cannot be trusted by them; "
            f"at least {VOLTAGE_POINTS_MIN} are needed, or none"
        )
    prior_u = sensor.gain_errors_max.get(VOLTAGE, 0.0) / SQRT3
    fit = fit_line(points, prior_u if prior_u > 0 else None)
    _check_spread(fit, "voltage", "V", reference)
    return fit


def _check_spread(fit: LineFit, what: str, unit: str, reference: Reference) -> None:
    """Raises CalibrationFault for points that stray further from a line than reference and sensor could explain."""
    if fit.chance >= CHANCE_MIN:
        return
    worst = int(np.argmax(np.abs(fit.residuals) / fit.residual_u))
    raise CalibrationFault(
        f"the {what} cannot be trusted, nor any energy by it: the points stray from a line by up to "
        f"{abs(fit.residuals[worst]) * 1e3:.3g} m{unit} (point {worst + 1}), where "
        f"{fit.residual_u[worst] * 1e3:.2g} m{unit} are claimed: {reference.name} is noisier "
        "than that, a reading is mistyped, or the load moved; repeat that point"
    )


def _correction(fit: LineFit, readings: Sequence[float], margin: float = 0.0) -> Correction:
    least, most = min(readings), max(readings)
    return Correction(fit.gain, fit.offset, least * (1.0 - margin), most * (1.0 + margin))


def _widened(fit: LineFit) -> np.ndarray:
    """Covariance, wider where the points stray further than stated, though not so far that they are refused."""
    scatter = fit.chi_squared / fit.degrees if fit.degrees > 0 else 1.0
    return fit.covariance * max(scatter, 1.0)


def _notes(fitted: Fitted, sensor: ErrorBounds) -> list[str]:
    of_current = math.hypot(*(b for source, b in sensor.gain_errors_max.items() if source != VOLTAGE))
    if abs(fitted.current.gain - 1) <= 1.2 * of_current:
        return []
    return [
        f"the current's gain is {100 * (fitted.current.gain - 1):+.2f} % off, more than the "
        f"{100 * of_current:.2g} % that shunt and chip may have as delivered: is shunt= what is printed "
        "on the resistor, are VIN+ and VIN- soldered well?"
    ]


def _check_helps(fitted: Fitted, sensor: ErrorBounds, reference: Reference) -> None:
    """Raises CalibrationFault for a calibration that knows the power less well than the data sheets."""
    middle_a = max(each.reference_a for each in fitted.points) / 2
    middle_v = float(np.mean([each.voltage_v for each in fitted.points]))
    after, before = fitted.calibration.power_u(middle_a, middle_v), sensor.power_gain_u
    if fitted.voltage is None:
        after = math.hypot(after, sensor.voltage_gain_error_max / SQRT3)
    if after > before:
        raise CalibrationFault(
            f"power and energy would be trusted less than without a calibration: by {reference.name} "
            f"({reference.stated}) they are known to ±{200 * after:.2g} %, by the data sheets to ±{200 * before:.2g} % "
            "(k = 2): take a better reference"
        )
