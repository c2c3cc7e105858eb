"""Self-heating of a shunt: the reading increases with the shunt's warmth.

    reading = (true - offset) / gain * (1 + per_a2 * warmth)      steady: a bow of per_a2 * I^3

Warmth is the square of the current, low-pass filtered with the shunt's thermal time constant. `per_a2` is temperature
coefficient times thermal resistance times resistance. The model has one thermal resistance and one heat capacity.

The time constant is found from readings while steady loads warm the shunt: the reading changes by heating * warmth, and
the heating is known from the curvature over all points. The residuals of that change determine the time constant. If
the load itself changes, the residuals are larger, and the time constant stays as uncertain as its prior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from opjoule.energy.cells import Cells
from opjoule.energy.step_integral import NS, StepIntegral
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

TAU_LEAST_S, TAU_MOST_S = 2.0, 30.0
"""Assumed limits of a chip resistor's thermal time constant on its board; no data sheet states it."""
TAU_S: Final = math.sqrt(TAU_LEAST_S * TAU_MOST_S)
LN_TAU_U: Final = math.log(TAU_MOST_S / TAU_LEAST_S) / math.sqrt(12.0)
"""Standard uncertainty of its logarithm, any value between the limits equally likely."""
BINS_PER_TAU: Final = 20
STEPS_MAX: Final = 10_000_000
"""Maximum number of steps; they are longer in a trace of more than 40 days, or one that claims to be."""
_TOGETHER: Final = 1 << 18


@dataclass(frozen=True)
class Heating:
    """Parameters of one shunt's self-heating."""

    per_a2: float = 0.0
    """Relative change of the reading at a steady current, per squared reading [1/A^2]."""
    tau_s: float = TAU_S
    """Thermal time constant."""
    ln_tau_u: float = LN_TAU_U
    """Standard uncertainty of its natural logarithm."""


@dataclass(frozen=True)
class Warmth:
    """Square of the current, low-pass filtered with a time constant."""

    edges_ns: Int64Array
    value_a2: Float64Array
    """Warmth at the edges, shape as `edges_ns`."""

    def at(self, meter_ns: Int64Array) -> Float64Array:
        """Warmth [A^2] at these times, same shape."""
        first_ns = self.edges_ns[0]
        since_s = (meter_ns - first_ns) * NS
        return np.asarray(np.interp(since_s, (self.edges_ns - first_ns) * NS, self.value_a2), np.float64)


def warmth(meter_ns: Int64Array, current_a: Float64Array, heating: Heating) -> Warmth:
    """Warmth along a trace. Before its start, the shunt has the steady warmth of the first time constant's current.

    Where a current is NaN, the warmth follows the readings before it. There is at least one time, and times increase.
    """
    span_ns = int(meter_ns[-1]) - int(meter_ns[0])
    step_ns = max(int(heating.tau_s / BINS_PER_TAU / NS), span_ns // STEPS_MAX, 1)
    squares_a2 = _mean_squares(meter_ns, current_a, step_ns)
    value_a2 = _followed(squares_a2, math.exp(-step_ns * NS / heating.tau_s), heating.per_a2)
    return Warmth(meter_ns[0] + step_ns * np.arange(value_a2.size, dtype=np.int64), value_a2)


def _mean_squares(meter_ns: Int64Array, current_a: Float64Array, step_ns: int) -> Float64Array:
    """Mean of the squares in each step; a step without a reading has that of the step before."""
    count = int((meter_ns[-1] - meter_ns[0]) // step_ns) + 1
    total, counts = np.zeros(count), np.zeros(count)
    for low in range(0, meter_ns.size, _TOGETHER):
        some = slice(low, low + _TOGETHER)
        own_a, place = current_a[some], (meter_ns[some] - meter_ns[0]) // step_ns
        good = ~np.isnan(own_a)
        total += np.bincount(place[good], own_a[good] ** 2, count)
        counts += np.bincount(place[good], minlength=count)
    known = np.flatnonzero(counts)
    if not known.size:
        return total
    before = known[np.maximum(np.searchsorted(known, np.arange(count), side="right") - 1, 0)]
    return np.asarray(total[before] / counts[before], np.float64)


def _followed(squares_a2: Float64Array, kept: float, per_a2: float) -> Float64Array:
    """Warmth at the edges of the steps, one more than steps; a warm shunt dissipates more power."""
    at_start_a2 = float(squares_a2[:BINS_PER_TAU].mean())
    value_a2 = at_start_a2 / (1.0 + per_a2 * at_start_a2)
    values = [value_a2]
    for square_a2 in squares_a2.tolist():
        value_a2 = kept * value_a2 + (1.0 - kept) * square_a2 / (1.0 + per_a2 * value_a2)
        values.append(value_a2)
    return np.array(values)


def heat_integral(cells: Cells, tau_s: float) -> StepIntegral:
    """Integral of power times warmth [J A^2]: change of an energy with `per_a2` without sign. Cached in the cells."""

    def made() -> StepIntegral:
        centre_ns = cells.bounds_ns[:-1] + np.diff(cells.bounds_ns) // 2
        warm_a2 = warmth(centre_ns, cells.current_a, Heating(0.0, tau_s)).at(centre_ns)
        return StepIntegral(cells.bounds_ns, cells.current_a, cells.voltage_v, warm_a2)

    return cells.once(("heat", tau_s), made)


STEP_NS: Final = 500_000_000
STEADY_S: Final = 60.0
"""Length of a point in which the shunt's temperature settles; only its last third counts."""
KEPT_FROM: Final = 2 / 3
SETTLED_S: Final = 1.0
"""Time left out at the beginning of a point, when the load has just been set."""
TAUS_S: Final = np.geomspace(TAU_LEAST_S, TAU_MOST_S, 80)
TOGETHER: Final = 4.0
"""Number of steps whose errors count as one, since changes of the load are slower than a step."""
LN_TAU_U_LEAST: Final = 0.02


@dataclass(frozen=True)
class PointCourse:
    """A sensor's readings in steps of equal length, from the start of its recording to the end of one point."""

    step_s: float
    squares_a2: Float64Array
    """Mean square of the readings in each step, shape (n,)."""
    reading_a: Float64Array
    """Mean reading of each step of the point, shape (k,); these are the last k of the n steps."""

    @classmethod
    def of(cls, cells: Cells, start_ns: int, end_ns: int, period_ns: int = 0) -> Self:
        """The course between two times of the meter; the steps are whole periods if the load repeats a pattern."""
        step_ns = max(round(STEP_NS / period_ns), 1) * period_ns if period_ns else STEP_NS
        steps = int((end_ns - start_ns) // step_ns)
        before = int((start_ns - cells.start_ns) // step_ns)
        edges_ns = start_ns + step_ns * np.arange(-before, steps + 1, dtype=np.int64)
        step_s = step_ns * NS
        squares_a2 = cells.square.between_edges(edges_ns) / step_s
        return cls(step_s, squares_a2, cells.current.between_edges(edges_ns[before:]) / step_s)

    def beside(self, other: Self) -> Self:
        """The course without the load's own changes, which another meter in series has measured."""
        count = min(self.reading_a.size, other.reading_a.size)
        moved = other.reading_a[:count]
        steady = float(moved.mean()) / moved if abs(float(moved.mean())) > 0 else np.ones(count)
        return replace(self, reading_a=self.reading_a[:count] * steady)

    def warmth_a2(self, heating: Heating) -> Float64Array:
        """Mean warmth in each step of the point, shape (k,)."""
        kept = math.exp(-self.step_s / heating.tau_s)
        first = max(round(heating.tau_s / self.step_s), 1)
        value_a2 = float(self.squares_a2[:first].mean())
        warmths = []
        for square_a2 in self.squares_a2.tolist():
            later_a2 = kept * value_a2 + (1.0 - kept) * square_a2 / (1.0 + heating.per_a2 * value_a2)
            warmths.append((value_a2 + later_a2) / 2.0)
            value_a2 = later_a2
        return np.array(warmths[-self.reading_a.size :])

    def kept_warmth_a2(self, heating: Heating) -> float:
        """Mean warmth [A^2] in the part of the point that counts."""
        warmth_a2 = self.warmth_a2(heating)
        return float(warmth_a2[round(warmth_a2.size * KEPT_FROM) :].mean())

    def left_a(self, heating: Heating) -> Float64Array:
        """Residual of the readings about their mean after correction for this heating [A]."""
        cold_a = self.reading_a / (1.0 + heating.per_a2 * self.warmth_a2(heating))
        some = cold_a[round(SETTLED_S / self.step_s) :]
        return np.asarray(some - some.mean(), np.float64)


def time_constant(courses: Sequence[PointCourse], per_a2: float) -> Heating:
    """The heating with its thermal time constant and the uncertainty of that; the prior is uniform within the limits.

    Source: posterior of one parameter on a grid, with the residual noise at the best value.
    """
    left = [[course.left_a(Heating(per_a2, tau_s)) for course in courses] for tau_s in TAUS_S.tolist()]
    squares = np.array([sum(float(left_a @ left_a) for left_a in one) for one in left])
    degrees = max(sum(left_a.size - 1 for left_a in left[0]) - 1, 1)
    noise_a2 = max(float(squares.min()) / degrees, 1e-18)
    chance = np.exp(-(squares - squares.min()) / (2.0 * TOGETHER * noise_a2))
    chance /= chance.sum()
    ln_tau = np.log(TAUS_S)
    mean = float(chance @ ln_tau)
    spread = math.sqrt(float(chance @ (ln_tau - mean) ** 2))
    return Heating(per_a2, math.exp(mean), max(spread, LN_TAU_U_LEAST))
