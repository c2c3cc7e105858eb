"""Thermal time constant of a shunt, from its sensor's readings while steady loads warm it.

The reading at a steady load changes by heating * warmth; the heating is known from the curvature over all points. The
residuals of that change determine the time constant. If the load itself changes, the residuals are larger, and the time
constant stays as uncertain as its prior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from opjoule.energy.cells import Cells
from opjoule.energy.shunt_heat import TAU_LEAST_S, TAU_MOST_S, Heating
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import Float64Array

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
