"""Fits a calibration to points, or reports in one line which figure cannot be trusted and why; finds drift since then.

Drift is a comparison with new points. Errors of the reference occur in both calibration and comparison and cancel; even
a coarse reference thus shows a small drift.
Source: JCGM 100:2008, F.1.2.3; the normalised error |d| / U(d) as in ISO/IEC 17043, B.3.1.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import DataFault
from opjoule.base.units import counted
from opjoule.energy.calibration.line_fit import LineFit, LinePoint, fit_line
from opjoule.energy.calibration.reference import Reference
from opjoule.energy.error_bounds import HEAT, SQRT3, SWAPPED, VOLTAGE, ErrorBounds
from opjoule.energy.sensor_calibration import CommonSource, Correction, SensorCalibration, as_matrix
from opjoule.energy.shunt_heat import STEADY_S, Heating, PointCourse, time_constant

CURRENT_POINTS_MIN: Final = 4
"""A line has two parameters; the remaining degrees of freedom test whether the points lie on one."""
VOLTAGE_POINTS_MIN: Final = 3
SPAN_MIN: Final = 0.5
"""Greatest ratio of the least to the greatest current; above it, offset and gain are not identifiable."""
VOLTAGE_RANGE: Final = 0.05
"""Relative range around a voltage calibrated at one point in which it holds; the gain is then the data sheet's."""
GAIN_MIN, GAIN_MAX = 0.5, 2.0
"""Limits of a current's gain: an error beyond them comes from the wiring or a wrong shunt value, not the sensor."""
VOLTAGE_OFF_MAX: Final = 0.1
"""Greatest relative error of a voltage; beyond it the reference reads elsewhere, or the unit is wrong."""
CHANCE_MIN: Final = 1e-3
"""Least p-value of the fit: below it the points scatter more than their stated uncertainties allow."""
ROUNDS: Final = 2
"""Iterations: the curvature depends on the points' warmth, which depends on the time constant and the curvature."""


class CalibrationFault(DataFault):
    """Raised when points do not allow a calibration, or when a calibration does not fit the sensor."""


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
    warmth_a2: float | None = None
    """Warmth of the shunt: squared readings filtered with its time constant; None: its temperature had not settled."""
    course: PointCourse | None = field(default=None, compare=False, repr=False)
    """The sensor's readings while the shunt warmed up; None: not recorded."""

    def warmed(self, heating: Heating) -> Self:
        """The point with its warmth computed for this heating, if its course is known."""
        return replace(self, warmth_a2=self.course.kept_warmth_a2(heating)) if self.course else self

    @property
    def current(self) -> LinePoint:
        """Current of sensor and reference [A]."""
        readings = self.current_a, self.current_u_a, self.reference_a, self.reference_u_a
        return LinePoint(*readings, self.warmth_a2 or 0.0)

    @property
    def voltage(self) -> LinePoint | None:
        """Voltage of sensor and reference [V]; None if the reference measured none."""
        if self.reference_v is None:
            return None
        return LinePoint(self.voltage_v, self.voltage_u_v, self.reference_v, self.reference_u_v)


@dataclass(frozen=True)
class Fitted:
    """A calibration, with the fits and points behind it."""

    calibration: SensorCalibration
    current: LineFit
    voltage: LineFit | None
    points: tuple[ReferencePoint, ...]
    notes: tuple[str, ...]
    """Remarks that are not faults, one line each."""


def calibrate(points: Sequence[ReferencePoint], reference: Reference, sensor: ErrorBounds, identity: str) -> Fitted:
    """Fits the current and, if the reference measured it, the voltage; the sensor's bounds limit the voltage's gain.

    Raises: CalibrationFault: too few points, points at one current, points that scatter more than their
            uncertainty, or a reference that is less accurate than the data sheets.
    """
    current, points, heating = _with_bow(points, reference, sensor)
    voltages = [point.voltage for point in points if point.voltage]
    voltage = _voltage(voltages, reference, sensor) if voltages else None
    corrections = (
        _correction(current, [point.current_a for point in points]),
        _correction(voltage, [point.reading for point in voltages], VOLTAGE_RANGE) if voltage else None,
    )
    covariance = np.zeros((5, 5))
    covariance[np.ix_([0, 2, 4], [0, 2, 4])] = _widened(current)
    if voltage:
        covariance[np.ix_([1, 3], [1, 3])] = _widened(voltage)[:2, :2]
    effects = {e.name: e.effect(corrections[0], corrections[1] or Correction()) for e in reference.common}
    if voltage is None:
        effects = {name: (effect[0], 0.0, effect[2], 0.0, 0.0) for name, effect in effects.items()}
    if heating is None and sensor.heating_max_per_a2:
        bound = sensor.heating_max_per_a2
        effects[f"{sensor.sensor_id}: {HEAT}"] = heating_effect([p.current_a for p in points], bound)
    calibration = SensorCalibration(
        identity,
        *corrections,
        covariance=as_matrix(covariance.tolist()),
        common=tuple(CommonSource(name, effect) for name, effect in effects.items() if any(effect)),
        heating=heating or Heating(),
    )
    fitted = Fitted(calibration, current, voltage, tuple(points), tuple(_notes(current, sensor)))
    _check_helps(fitted, sensor, reference)
    return fitted


def heating_effect(readings_a: Sequence[float], bound_per_a2: float) -> tuple[float, ...]:
    """Change of the parameters of a straight line by one standard uncertainty of a curvature that was not fitted."""
    x = np.array(readings_a)
    slope, level = np.polyfit(x, x**3, 1).tolist() if len(set(readings_a)) > 1 else (0.0, 0.0)
    u = bound_per_a2 / SQRT3
    return slope * u, 0.0, level * u, 0.0, u


def _with_bow(
    points: Sequence[ReferencePoint], reference: Reference, sensor: ErrorBounds
) -> tuple[LineFit, Sequence[ReferencePoint], Heating | None]:
    """Fit of the current, the points with their warmth, and the heating; None if it cannot be fitted."""
    _check_currents(points, reference)
    prior_u = sensor.heating_max_per_a2
    if not prior_u or any(point.warmth_a2 is None for point in points):
        straight = [replace(point, warmth_a2=None).current for point in points]
        return _line(straight, None, "current", "A", reference), points, None
    heating = Heating()
    points = [point.warmed(heating) for point in points]
    fit = fit_line([point.current for point in points], None, prior_u)
    courses = [point.course for point in points if point.course]
    for _ in range(ROUNDS if len(courses) == len(points) else 0):
        heating = time_constant(courses, fit.heating)
        points = [point.warmed(heating) for point in points]
        fit = fit_line([point.current for point in points], None, prior_u)
    fit = _line([point.current for point in points], None, "current", "A", reference, prior_u)
    return fit, points, replace(heating, per_a2=fit.heating)


def _check_currents(points: Sequence[ReferencePoint], reference: Reference) -> None:
    """Raises CalibrationFault for too few points, points at one current, or a sensor that reads something else."""
    if len(points) < CURRENT_POINTS_MIN:
        raise CalibrationFault(
            f"{counted(len(points), 'point')}: gain and offset of the current cannot be trusted, and no energy "
            f"either; take at least {CURRENT_POINTS_MIN}, from the idle current to above the board's peak"
        )
    currents_a = [point.reference_a for point in points]
    least_a, most_a = min(currents_a), max(currents_a)
    if most_a <= 0 or least_a > SPAN_MIN * most_a:
        raise CalibrationFault(
            f"all points lie between {least_a:.4g} and {most_a:.4g} A, too narrow a range to separate gain "
            f"from offset: neither can be trusted; add points below {SPAN_MIN * most_a:.2g} A, for example "
            "without the load"
        )
    readings_a = [point.current_a for point in points]
    if readings_a[currents_a.index(most_a)] < readings_a[currents_a.index(least_a)]:
        raise CalibrationFault(
            f"the sensor's current falls to {min(readings_a):.3f} A while that of {reference.name} rises to "
            f"{most_a:.3f} A: it flows backwards: {SWAPPED}"
        )
    span_a, read_a = most_a - least_a, max(readings_a) - min(readings_a)
    if not GAIN_MIN * read_a < span_a < GAIN_MAX * read_a:
        raise CalibrationFault(
            f"the current changed by {span_a:.4g} A according to {reference.name} and by {read_a:.4g} A according to "
            "the sensor. No sensor is so far off, so the calibration cannot be trusted. Check that shunt= is the value "
            "printed on the resistor, that the reference is in series with it, and that readings are in the "
            "unit that is asked for"
        )


def _voltage(points: Sequence[LinePoint], reference: Reference, sensor: ErrorBounds) -> LineFit:
    if len(points) < VOLTAGE_POINTS_MIN:
        raise CalibrationFault(
            f"{counted(len(points), 'point')} with a voltage: neither the voltage nor any energy can be "
            f"trusted; take at least {VOLTAGE_POINTS_MIN}, or none"
        )
    read_v = sum(point.reading for point in points) / len(points)
    true_v = sum(point.reference for point in points) / len(points)
    if abs(read_v - true_v) > VOLTAGE_OFF_MAX * abs(true_v):
        raise CalibrationFault(
            f"the voltage is {true_v:.4g} V according to {reference.name} and {read_v:.4g} V according to the sensor. "
            "No sensor is so far off: neither voltage nor energy can be trusted. Check that the reference reads on the "
            "board's side of the shunt, in the unit that is asked for"
        )
    prior_u = sensor.gain_errors_max.get(VOLTAGE, 0.0) / SQRT3
    return _line(points, prior_u if prior_u > 0 else None, "voltage", "V", reference)


def _line(
    points: Sequence[LinePoint],
    prior_u: float | None,
    what: str,
    unit: str,
    reference: Reference,
    heating_prior_u: float | None = None,
) -> LineFit:
    """The fitted line. Raises: CalibrationFault: the points scatter more than reference and sensor could explain."""
    fit = fit_line(points, prior_u, heating_prior_u)
    if fit.chance >= CHANCE_MIN:
        return fit
    worst, others = _worst(points, prior_u, heating_prior_u)
    away = points[worst].reference - others.value(points[worst])
    short = what == "current" and heating_prior_u is None
    heats = f", or the shunt warmed up: take points of {STEADY_S:g} s" if short else ""
    raise CalibrationFault(
        f"the {what} cannot be trusted, nor any energy: point {worst + 1} lies {away * 1e3:+.3g} m{unit} "
        "from the line through the others, and the stated accuracies allow "
        f"{fit.residual_u[worst] * 1e3:.2g} m{unit}. Either {reference.name} is noisier than stated, or a "
        f"reading is mistyped, or the load changed{heats}; take that point again"
    )


def _worst(points: Sequence[LinePoint], prior_u: float | None, heating_prior_u: float | None) -> tuple[int, LineFit]:
    """Place of the point whose removal leaves the best line, and that line. The point's own residual is no criterion,
    since a wrong point at the end of the range attracts the line.
    """
    others = [[*points[:place], *points[place + 1 :]] for place in range(len(points))]
    without = {
        place: fit_line(rest, prior_u, heating_prior_u)
        for place, rest in enumerate(others)
        if prior_u is not None or len({point.reading for point in rest}) > 1
    }
    worst = min(without, key=lambda place: without[place].chi_squared)
    return worst, without[worst]


def _correction(fit: LineFit, readings: Sequence[float], margin: float = 0.0) -> Correction:
    least, most = min(readings), max(readings)
    return Correction(fit.gain, fit.offset, least * (1.0 - margin), most * (1.0 + margin))


def _widened(fit: LineFit) -> np.ndarray:
    """Covariance, widened if the points scatter more than stated but not enough to be refused."""
    scatter = fit.chi_squared / fit.degrees if fit.degrees > 0 else 1.0
    return fit.covariance * max(scatter, 1.0)


def _notes(current: LineFit, sensor: ErrorBounds) -> list[str]:
    of_current = math.hypot(*(b for source, b in sensor.gain_errors_max.items() if source != VOLTAGE))
    if abs(current.gain - 1) <= 1.2 * of_current:
        return []
    return [
        f"the current's gain is {100 * (current.gain - 1):+.2f} % off, more than the "
        f"{100 * of_current:.2g} % that shunt and chip may have as delivered: check that shunt= is the value "
        "printed on the resistor, and that VIN+ and VIN- are soldered well"
    ]


def _check_helps(fitted: Fitted, sensor: ErrorBounds, reference: Reference) -> None:
    """Raises CalibrationFault for a calibration that gives the power less accurately than the data sheets."""
    middle_a = max(point.reference_a for point in fitted.points) / 2
    middle_v = float(np.mean([point.voltage_v for point in fitted.points]))
    after, before = fitted.calibration.power_u(middle_a, middle_v), sensor.power_gain_u
    if fitted.voltage is None:
        after = math.hypot(after, sensor.voltage_gain_error_max / SQRT3)
    if after > before:
        raise CalibrationFault(
            f"power and energy would be less certain than without a calibration: ±{200 * after:.2g} % with "
            f"{reference.name} ({reference.stated}), ±{200 * before:.2g} % with the data sheets (k = 2); "
            "use a better reference"
        )


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
