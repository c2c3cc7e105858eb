"""Charge while samples were lost, and its uncertainty.

A gap whose charge the meter recovered is exact if it lies inside the window. In any other gap, the current is assumed
to be the mean of the adjacent samples. Its uncertainty is the wider of two bounds: the least and greatest current
around the gap, clipped to the sensor's range (rectangular distribution), and the error of the same filling on stretches
of the same length elsewhere in the window, where the samples did arrive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.energy.cells import Cells, LostCell
from opjoule.energy.error_bounds import SQRT3, ErrorBounds
from opjoule.energy.step_integral import NS

TRIALS_MIN: Final = 20
"""Least number of stretches for an estimate of the filling error."""


@dataclass(frozen=True)
class Loss:
    """The lost part of a window."""

    standard_u_j: float
    unknown_s: float
    """Time in gaps without a known charge [s]."""
    lost_samples: int
    bounds_j: tuple[float, float]
    """Least and greatest energy in the gaps without a known charge [J], all gaps at their bounds together."""


@dataclass(frozen=True)
class _Part:
    """The part of one gap that lies inside the window."""

    standard_u_j: float
    unknown_s: float
    least_j: float
    greatest_j: float


def loss_in(cells: Cells, start_ns: int, end_ns: int, sensor: ErrorBounds) -> Loss:
    """The loss inside one window [meter_ns]."""
    lost = [one for one in cells.lost if _overlap_ns(one, start_ns, end_ns) > 0]
    if not lost:
        return Loss(0.0, 0.0, 0, (0.0, 0.0))
    elsewhere = _FillingError(cells, start_ns, end_ns)
    parts = [_part(cells, one, _overlap_ns(one, start_ns, end_ns), sensor, elsewhere) for one in lost]
    return Loss(
        standard_u_j=math.hypot(*(part.standard_u_j for part in parts)),
        unknown_s=math.fsum(part.unknown_s for part in parts),
        lost_samples=sum(one.gap.lost_samples for one in lost),
        bounds_j=(math.fsum(part.least_j for part in parts), math.fsum(part.greatest_j for part in parts)),
    )


def _overlap_ns(lost: LostCell, start_ns: int, end_ns: int) -> int:
    return min(lost.gap.end_meter_ns, end_ns) - max(lost.gap.start_meter_ns, start_ns)


def _part(cells: Cells, lost: LostCell, overlap_ns: int, sensor: ErrorBounds, elsewhere: _FillingError) -> _Part:
    inside_s, whole_s = overlap_ns * NS, lost.gap.duration_ns * NS
    current_a, voltage_v = float(cells.current_a[lost.cell]), float(cells.voltage_v[lost.cell])
    least_a = max(lost.current_min_a, sensor.current_min_a)
    greatest_a = max(min(lost.current_max_a, sensor.current_max_a), least_a)
    voltage_u_j = abs(current_a * lost.voltage_step_v) * inside_s / (2 * SQRT3)
    if lost.gap.charge_c is None:
        half_a = max(greatest_a - current_a, current_a - least_a, 0.0)
        bounds_u_j = half_a * voltage_v * inside_s / SQRT3
        filling_u_j = elsewhere.standard_u_w(lost.gap.duration_ns) * inside_s
        standard_u_j = math.hypot(max(bounds_u_j, filling_u_j), voltage_u_j)
        ends_j = least_a * voltage_v * inside_s, greatest_a * voltage_v * inside_s
        return _Part(standard_u_j, inside_s, *ends_j)
    charge_u_c = _cut_charge_u_c(current_a, least_a, greatest_a, inside_s, whole_s)
    return _Part(math.hypot(charge_u_c * voltage_v, voltage_u_j), 0.0, 0.0, 0.0)


def _cut_charge_u_c(mean_a: float, least_a: float, greatest_a: float, inside_s: float, whole_s: float) -> float:
    """Standard uncertainty [C] of the part of a known charge that flowed on one side of a window's edge."""
    outside_s = whole_s - inside_s
    if outside_s <= 0:
        return 0.0
    most_c = min((greatest_a - mean_a) * inside_s, (mean_a - least_a) * outside_s)
    fewest_c = min((mean_a - least_a) * inside_s, (greatest_a - mean_a) * outside_s)
    return max(most_c, fewest_c, 0.0) / SQRT3


class _FillingError:
    """Error of a gap filled from its neighbours, estimated where the samples did arrive."""

    def __init__(self, cells: Cells, start_ns: int, end_ns: int) -> None:
        inside = cells.inside(start_ns, end_ns)
        power_w = cells.of_samples(cells.current_a, inside) * cells.of_samples(cells.voltage_v, inside)
        self._running = np.concatenate([np.zeros(1), np.cumsum(power_w)])
        self._period_ns = max(cells.period_ns, 1)
        self._known: dict[int, float] = {}

    def standard_u_w(self, duration_ns: int) -> float:
        """Root mean square error [W] of the mean power of a stretch filled like a gap of this length."""
        length = max(round(duration_ns / self._period_ns), 1)
        if length not in self._known:
            self._known[length] = self._error_w(length)
        return self._known[length]

    def _error_w(self, length: int) -> float:
        near, running = max(length, 2), self._running
        starts = np.arange(near, running.size - 1 - length - near + 1)
        if starts.size < TRIALS_MIN:
            return 0.0
        truth = (running[starts + length] - running[starts]) / length
        before = running[starts] - running[starts - near]
        behind = running[starts + length + near] - running[starts + length]
        error = truth - (before + behind) / (2 * near)
        return float(np.sqrt(np.mean(error**2)))
