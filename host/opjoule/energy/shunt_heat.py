"""Self-heating of a shunt: the reading increases with the shunt's warmth.

    reading = (true - offset) / gain * (1 + per_a2 * warmth)      steady: a bow of per_a2 * I^3

Warmth is the square of the current, low-pass filtered with the shunt's thermal time constant. `per_a2` is temperature
coefficient times thermal resistance times resistance. The model has one thermal resistance and one heat capacity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from opjoule.energy.step_integral import NS, StepIntegral
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

if TYPE_CHECKING:
    from opjoule.energy.cells import Cells

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
    if tau_s not in cells.heat:
        centre_ns = cells.bounds_ns[:-1] + np.diff(cells.bounds_ns) // 2
        warm_a2 = warmth(centre_ns, cells.current_a, Heating(0.0, tau_s)).at(centre_ns)
        cells.heat[tau_s] = StepIntegral(cells.bounds_ns, cells.current_a, cells.voltage_v, warm_a2)
    return cells.heat[tau_s]
