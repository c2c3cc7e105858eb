"""The supply's load line: voltage at every sample from occasional bus readings.

In shunt mode the voltage is converted once in many conversions. A supply with its cable is a source behind a
resistance, V(t) = V0(t) - R I(t). Voltages held from reading to reading would make the energy wrong by R times the
variance of the current. The line is therefore fitted to the run's own readings after the run, when each reading has
neighbours on both sides:

* The current during a reading was not converted. It is predicted from the samples around it, by the rule that best
  predicts this trace's own samples from their neighbours. Errors of the prediction then do not flatten the line.
* R comes from changes relative to the readings within about a second (V0 may drift). They are weighted by how well the
  current is known, and outliers are cut. The part of the current that is not predicted adds to the uncertainty of the
  slope. Readings cannot scatter less than R times the unpredicted current: this bounds R if nothing else does.
* V0 is linear from reading to reading; each reading is averaged with its neighbours by weight.

`opjoule.energy.budget` estimates the uncertainty of the result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

RESISTANCE_MAX_OHM: Final = 2.0
"""Largest resistance of a supply that can feed a board."""
NEAR_PERIODS: Final = 16
"""Largest distance of the samples on both sides of a usable reading, in periods."""
WIDE: Final = 8
"""Number of samples on either side that give the level around a reading."""
TRAINING_MAX: Final = 20_000
"""Maximum number of samples for learning the prediction of a current from its neighbours."""
NEIGHBOURS: Final = 8
"""Readings before and after one to which it is compared: about a second, in which a source hardly drifts."""
ROUNDS: Final = 4
OUTLIER: Final = 3.0
BOUND_SHARE: Final = 0.75
BOUND_U: Final = 0.4
"""Resistance and its standard uncertainty, as parts of the largest one that the readings' scatter allows."""
BOUND_IDLE: Final = 25.0
"""Ratio of the variances of bound and slope above which the slope is used alone."""
STEP_LEAST_V: Final = 1e-6


@dataclass(frozen=True)
class BusReadings:
    """Conversions of the bus voltage between those of the current."""

    meter_ns: Int64Array
    """End of each conversion [ns], shape (m,), increasing."""
    voltage_v: Float64Array
    """shape (m,)"""

    @property
    def step_v(self) -> float:
        """Smallest difference of two readings, which is the step of the codes [V]; 0 if all are equal."""
        distances = np.diff(np.unique(self.voltage_v))
        distances = distances[distances > STEP_LEAST_V]
        return float(distances.min()) if distances.size else 0.0


@dataclass(frozen=True)
class SupplyLine:
    """V(t) = V0(t) - R I(t), with V0 linear between knots; arrays of shape (k,), one value for each usable reading."""

    resistance_ohm: float
    resistance_u_ohm: float
    """Standard uncertainty."""
    meter_ns: Int64Array
    reading_v: Float64Array
    """Voltage of each reading, as converted."""
    current_a: Float64Array
    """Predicted current during the reading."""
    weight: Float64Array
    """Weight of each reading in the smoothed line, by how well its current is known; at most 1."""

    @property
    def source_v(self) -> Float64Array:
        """V0 at each reading, from that reading alone [V]."""
        return self.reading_v + self.resistance_ohm * self.current_a

    def voltage_v(self, meter_ns: Int64Array, current_a: Float64Array) -> Float64Array:
        """Voltages [V] at these times with these currents, same shape; NaN where an input is NaN."""
        knots_v = _smoothed(self.source_v, self.weight)
        return self._between(meter_ns, knots_v) - self.resistance_ohm * current_a

    def reading_current_a(self, meter_ns: Int64Array) -> Float64Array:
        """Current of the readings [A], interpolated like V0. Its difference from the current scales the error of R."""
        return self._between(meter_ns, _smoothed(self.current_a, self.weight))

    def scaled(self, factors: Float64Array) -> SupplyLine:
        """The line of the same readings with their currents multiplied by these factors, shape (k,), near 1."""
        mean = float(factors.mean()) if factors.size else 1.0
        return replace(
            self,
            resistance_ohm=self.resistance_ohm / mean,
            resistance_u_ohm=self.resistance_u_ohm / mean,
            current_a=self.current_a * factors,
        )

    def _between(self, meter_ns: Int64Array, values: Float64Array) -> Float64Array:
        since_ns = (meter_ns - self.meter_ns[0]).astype(np.float64)
        knots_ns = (self.meter_ns - self.meter_ns[0]).astype(np.float64)
        return np.asarray(np.interp(since_ns, knots_ns, values), np.float64)


def fit_supply_line(bus: BusReadings, meter_ns: Int64Array, current_a: Float64Array) -> SupplyLine | None:
    """The load line of a trace whose lost currents are NaN; None if no reading lies between two good samples."""
    good = ~np.isnan(current_a)
    times_ns, currents_a = meter_ns[good], current_a[good]
    if times_ns.size < 2 or bus.meter_ns.size == 0:
        return None
    after = np.searchsorted(times_ns, bus.meter_ns)
    period_ns = _period_ns(times_ns)
    usable = _between_near_samples(bus.meter_ns, times_ns, after, NEAR_PERIODS * period_ns)
    if not usable.any():
        return None
    after, reading_v = after[usable], bus.voltage_v[usable]
    predicted_a, variance_a2 = _predicted(times_ns, currents_a, after, period_ns)
    step_v = bus.step_v
    resistance_ohm, resistance_u_ohm, other_v2 = _resistance(reading_v, predicted_a, variance_a2, step_v)
    doubt_v2 = other_v2 + resistance_ohm**2 * variance_a2
    readings = bus.meter_ns[usable], reading_v, predicted_a, float(doubt_v2.min()) / doubt_v2
    return SupplyLine(resistance_ohm, resistance_u_ohm, *readings)


def _period_ns(times_ns: Int64Array) -> float:
    """Median distance of neighbouring samples [ns], from a part of them."""
    first = np.arange(0, times_ns.size - 1, max((times_ns.size - 1) // TRAINING_MAX, 1))
    return max(float(np.median(times_ns[first + 1] - times_ns[first])), 1.0)


def _between_near_samples(
    bus_ns: Int64Array, times_ns: Int64Array, after: IndexArray, near_ns: float
) -> npt.NDArray[np.bool_]:
    inside = (after > 0) & (after < times_ns.size)
    before = np.clip(after - 1, 0, times_ns.size - 1)
    behind = np.clip(after, 0, times_ns.size - 1)
    return inside & (bus_ns - times_ns[before] < near_ns) & (times_ns[behind] - bus_ns < near_ns)


def _predicted(
    times_ns: Int64Array, currents_a: Float64Array, after: IndexArray, period_ns: float
) -> tuple[Float64Array, Float64Array]:
    """Current during each reading [A] and the variance of that prediction [A^2]."""
    slots = np.median((times_ns[after] - times_ns[after - 1]) / period_ns) - 1
    width = max(round(float(slots)), 1)
    last = currents_a.size - width
    stride = max(last // TRAINING_MAX, 1)
    starts = np.arange(1, last, stride)
    running = np.concatenate([np.zeros(1), np.cumsum(currents_a)])
    near_a, features, jump_a = _around(currents_a, running, after - 1, after)
    if starts.size < 4 * WIDE:
        return near_a, jump_a**2 / 12.0
    own_a = (running[starts + width] - running[starts]) / width
    own_near_a, own_features, own_jump_a = _around(currents_a, running, starts - 1, starts + width)
    factors, *_ = np.linalg.lstsq(own_features, own_a - own_near_a, rcond=None)
    error_a2 = (own_a - own_near_a - own_features @ factors) ** 2
    quiet_a2, share = _variance_by_jump(error_a2, own_jump_a**2)
    return near_a + features @ factors, quiet_a2 + share * jump_a**2


def _around(
    currents_a: Float64Array, running: Float64Array, before: IndexArray, behind: IndexArray
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(mean of the two nearest samples, differences of wider means from it, shape (k, 2), jump between the two)."""
    last = currents_a.size - 1
    near_a = (currents_a[before] + currents_a[behind]) / 2
    next_a = (currents_a[np.maximum(before - 1, 0)] + currents_a[np.minimum(behind + 1, last)]) / 2
    low, high = np.maximum(before + 1 - WIDE, 0), np.minimum(behind + WIDE, last + 1)
    wide_a = (running[before + 1] - running[low]) / (before + 1 - low)
    wide_a = (wide_a + (running[high] - running[behind]) / (high - behind)) / 2
    features = np.stack([next_a - near_a, wide_a - near_a], axis=1)
    return near_a, features, currents_a[behind] - currents_a[before]


def _variance_by_jump(error_a2: Float64Array, jump_a2: Float64Array) -> tuple[float, float]:
    """Variance of a prediction without a jump, and its growth with the jump's square."""
    quiet = jump_a2 <= np.quantile(jump_a2, 0.75)
    quiet_a2 = float(error_a2[quiet].mean())
    beyond = float(np.sum(jump_a2[~quiet]))
    share = float(np.sum(error_a2[~quiet] - quiet_a2)) / beyond if beyond > 0 else 0.0
    return quiet_a2, min(max(share, 0.0), 1.0)


def _resistance(
    reading_v: Float64Array, current_a: Float64Array, variance_a2: Float64Array, step_v: float
) -> tuple[float, float, float]:
    """(R, its standard uncertainty, variance of a reading from other causes [V^2])."""
    least_v2 = max(step_v, 1e-4) ** 2 / 12.0
    if reading_v.size < 3:
        return RESISTANCE_MAX_OHM / 10, RESISTANCE_MAX_OHM / 10, least_v2
    r_ohm, other_v2, trust = 0.0, least_v2, np.ones(reading_v.size)
    doubt_a2 = variance_a2 + 1e-12
    base = float(doubt_a2.min()) / doubt_a2
    change_v, change_a = _against_neighbours(reading_v, base), _against_neighbours(current_a, base)
    sure = variance_a2 <= np.median(variance_a2)
    for _ in range(ROUNDS):
        weight = trust / (other_v2 + r_ohm**2 * variance_a2)
        information = float(weight @ change_a**2)
        r_ohm = -float(weight @ (change_a * change_v)) / information if information > 0 else 0.0
        left_v = change_v + r_ohm * change_a
        expected_v = np.sqrt(other_v2 + r_ohm**2 * variance_a2)
        scale = max(1.4826 * float(np.median(np.abs(left_v) / expected_v)), 1.0)
        trust = np.minimum(1.0, OUTLIER * scale * expected_v / np.maximum(np.abs(left_v), 1e-12))
        spread_v2 = np.mean((trust * left_v)[sure] ** 2) - r_ohm**2 * np.mean(variance_a2[sure])
        other_v2 = max(float(spread_v2), least_v2)
    scatter_v2 = max(float(np.mean(left_v**2)), least_v2)
    most_ohm = min(RESISTANCE_MAX_OHM, math.sqrt(scatter_v2 / max(float(np.mean(variance_a2)), 1e-12)))
    if information <= 0:
        return BOUND_SHARE * most_ohm, BOUND_U * most_ohm, other_v2
    moved = float(np.sum((weight * change_a * left_v) ** 2))
    slope_u_ohm = max(math.sqrt(moved), math.sqrt(information)) / information
    predicted = information / (information + float(weight @ variance_a2))
    slope_u_ohm = math.hypot(slope_u_ohm, (1 - predicted) * max(r_ohm, most_ohm))
    return *_with_bound(r_ohm, slope_u_ohm, most_ohm), other_v2


def _with_bound(r_ohm: float, slope_u_ohm: float, most_ohm: float) -> tuple[float, float]:
    """The slope combined with the bound from the readings' scatter, at most scatter over current; favours large R."""
    slope, bound = 1 / slope_u_ohm**2, 1 / (BOUND_U * most_ohm) ** 2
    if slope > BOUND_IDLE * bound:
        return min(max(r_ohm, 0.0), RESISTANCE_MAX_OHM), slope_u_ohm
    joined_ohm = (slope * r_ohm + bound * BOUND_SHARE * most_ohm) / (slope + bound)
    return max(joined_ohm, 0.0), 1 / math.sqrt(slope + bound)


def _against_neighbours(values: Float64Array, weight: Float64Array) -> Float64Array:
    """Each value minus the weighted mean of up to 8 values before and after it, which removes slow drift."""
    ones = np.ones(2 * NEIGHBOURS + 1)
    half = slice(NEIGHBOURS, NEIGHBOURS + values.size)
    mean = np.convolve(values * weight, ones)[half] / np.convolve(weight, ones)[half]
    return np.asarray(values - mean, np.float64)


def _smoothed(values: Float64Array, weight: Float64Array) -> Float64Array:
    """Weighted mean of each value and, with half the weight, its neighbours; a doubtful value follows the others."""
    if values.size < 3:
        return values
    share = np.full(values.size, 1.0) * weight
    total, summed = share.copy(), share * values
    for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        total[here] += weight[there] / 2
        summed[here] += weight[there] / 2 * values[there]
    return np.asarray(summed / total, np.float64)
