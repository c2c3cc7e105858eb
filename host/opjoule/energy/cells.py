"""The trace as cells: each sample is constant from midpoint to midpoint, and each gap is a cell of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from opjoule.base.errors import WindowError
from opjoule.energy.moving_current import MovingCurrent, moving_current
from opjoule.energy.step_integral import NS, StepIntegral
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Gap, Int64Array, PowerTrace
from opjoule.energy.trace.supply_line import SupplyLine

AROUND_SAMPLES: Final = 32
"""Least number of samples on either side of a gap that bound the current in it."""
AROUND_FACTOR: Final = 4
"""Least length of these samples on either side, in lengths of the gap."""
SHORT: Final = 0.05
"""Quantile of the lengths of cells that is the shortest usual one."""
FEW: Final = 1000
"""Number of cells that are enough for it."""
EVEN: Final = 0.98
"""Least part of the period that the shortest usual cell of an even trace has: stamps of a meter are rounded."""
STRETCH: Final = 4
QUIETEST: Final = 0.05
QUIETEST_OF_NOISE: Final = 0.117
"""5 % quantile of the variances of stretches of 4 values, for white noise of variance 1 (chi squared, 3 degrees)."""
_TOGETHER: Final = 1 << 12
"""Stretches per step of the calculation: the arrays stay in the processor's cache."""
_Number = TypeVar("_Number", bound=np.generic)
T = TypeVar("T")


@dataclass(frozen=True)
class LostCell:
    """A gap as a cell, with the bounds of its current."""

    gap: Gap
    cell: int
    """Index among the cells."""
    current_min_a: float
    """Least current among the samples around; -inf if too few samples are around."""
    current_max_a: float
    """Greatest current among the samples around; +inf if too few samples are around."""
    voltage_step_v: float
    """Voltage after the gap minus voltage before it; 0 at the ends of the trace."""


@dataclass(frozen=True)
class Cells:
    """A trace as contiguous cells; build it once with `of` and use it for many windows."""

    bounds_ns: Int64Array
    """shape (m + 1,)"""
    current_a: Float64Array
    """shape (m,); in a gap the mean from its charge if that is known, else the mean of the adjacent samples"""
    voltage_v: Float64Array
    """shape (m,); in a gap the mean of the adjacent samples"""
    lost: tuple[LostCell, ...]
    period_ns: int
    clipped: BoolArray
    """shape (m,); True where the meter was at the end of its range; in a gap: for at least one of its samples"""
    supply: SupplyLine | None = None
    """The load line that gives the voltages; None if each current was measured with its own voltage."""

    @classmethod
    def of(cls, trace: PowerTrace) -> Cells:
        """The cells of a trace. Raises: WindowError: the trace has fewer than two good samples."""
        bad = np.flatnonzero(~trace.good)
        good = len(trace) - bad.size
        if good < 2:
            raise WindowError(f"the power trace holds {good} good samples: nothing to integrate")
        centre_ns, current_a = without(trace.meter_ns, bad), without(trace.current_a, bad)
        voltage_v, clipped = without(trace.voltage_v, bad), without(trace.clipped, bad)
        samples = _Samples(centre_ns, current_a, voltage_v, trace.period_ns, clipped)
        gaps = {after: _as_one(group) for after, group in _gaps_by_sample(trace, bad, samples)}
        return replace(_tile(samples, gaps), supply=trace.supply)

    @cached_property
    def power(self) -> StepIntegral:
        """Integral of the power [J]."""
        if self.supply is None:
            return StepIntegral(self.bounds_ns, self.current_a, self.voltage_v)
        moving_w = self.moving.a2 * self.supply.resistance_ohm
        return StepIntegral(self.bounds_ns, self.current_a * self.voltage_v - moving_w)

    @cached_property
    def voltage(self) -> StepIntegral:
        """Integral of the voltage [V s]."""
        return StepIntegral(self.bounds_ns, self.voltage_v)

    @cached_property
    def current(self) -> StepIntegral:
        """Integral of the current [C]."""
        return StepIntegral(self.bounds_ns, self.current_a)

    @cached_property
    def square(self) -> StepIntegral:
        """Integral of the current's square [A^2 s]."""
        return StepIntegral(self.bounds_ns, self.current_a, self.current_a)

    @cached_property
    def _clipped_time(self) -> StepIntegral:
        return StepIntegral(self.bounds_ns, self.clipped.astype(np.float64))

    def clipped_s(self, start_ns: int, end_ns: int) -> float:
        """Time within a window in cells at the end of the meter's range [s]."""
        return float(self._clipped_time.between(start_ns, end_ns)) if self.clipped.any() else 0.0

    def clipped_samples(self, start_ns: int, end_ns: int) -> int:
        """Samples at the end of the range in all cells that a window touches, lost samples of gaps included."""
        inside = self.inside(start_ns, end_ns)
        arrived = int(np.count_nonzero(self.of_samples(self.clipped, inside)))
        gaps = [one.gap for one in self.lost if inside.start <= one.cell < inside.stop]
        return arrived + sum(gap.clipped_samples for gap in gaps)

    @cached_property
    def line_shift(self) -> StepIntegral:
        """Integral of the change of power with the supply's resistance [J/ohm]."""
        if self.supply is None:
            return StepIntegral(self.bounds_ns, self.moving.a2)
        centre_ns = self.bounds_ns[:-1] + np.diff(self.bounds_ns) // 2
        shift_a = self.supply.reading_current_a(centre_ns) - self.current_a
        return StepIntegral(self.bounds_ns, self.current_a * shift_a - self.moving.a2)

    @cached_property
    def moving(self) -> MovingCurrent:
        """Variance of the current within each conversion, shape (m,); 0 if the voltages are not from a load line.

        The voltage falls while the current rises, so mean current times mean voltage is too large by R times this.
        """
        if self.supply is None:
            none = np.zeros(self.current_a.size)
            return MovingCurrent(none, none)
        return moving_current(self.current_a, self.period_ns)

    @cached_property
    def shortest_ns(self) -> float:
        """Length that few cells fall below [ns]: the period of an even trace, less for stamps at uneven distances."""
        some = np.arange(0, self.current_a.size, max(self.current_a.size // FEW, 1))
        lengths_ns = self.bounds_ns[some + 1] - self.bounds_ns[some]
        shortest_ns = float(np.quantile(lengths_ns, SHORT))
        return shortest_ns if shortest_ns < EVEN * self.period_ns else float(self.period_ns)

    @cached_property
    def noise_a(self) -> float:
        """Noise of the sensor [A], r.m.s. of a sample, from the quietest stretches of the whole trace."""
        current_a = self.of_samples(self.current_a, slice(None))
        count = current_a.size // STRETCH
        if count == 0:
            return 0.0
        variance_a2 = stretch_variances(current_a[: count * STRETCH], STRETCH)
        usual_a2, quietest_a2 = (quantile(variance_a2, share) for share in (0.5, QUIETEST))
        return math.sqrt(min(quietest_a2 / QUIETEST_OF_NOISE, usual_a2))

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], T]) -> T:
        """A value of some cells, computed by the first caller: several windows contain the same cells."""
        if key not in self._known:
            self._known[key] = compute()
        return cast("T", self._known[key])

    @cached_property
    def _cells_of_gaps(self) -> npt.NDArray[np.intp]:
        return np.array([lost.cell for lost in self.lost], np.intp)

    def lost_cells(self, some: slice) -> npt.NDArray[np.intp]:
        """Indices of the gaps within a slice of cells, counted from the slice's first cell."""
        first, last, _ = some.indices(self.current_a.size)
        of_gaps = self._cells_of_gaps
        return of_gaps[slice(*np.searchsorted(of_gaps, [first, last]))] - first

    def of_samples(self, column: npt.NDArray[_Number], some: slice) -> npt.NDArray[_Number]:
        """Values of a column, shape (m,), for the samples within a slice of cells; not copied if all are."""
        return without(column[some], self.lost_cells(some))

    def inside(self, start_ns: int, end_ns: int) -> slice:
        """The cells that a window touches."""
        first, last = self.power.cell_at([start_ns, end_ns]).tolist()
        return slice(first, last + 1)

    @property
    def start_ns(self) -> int:
        """Start of the first cell [meter_ns]."""
        return int(self.bounds_ns[0])

    @property
    def end_ns(self) -> int:
        """End of the last cell [meter_ns]."""
        return int(self.bounds_ns[-1])


def without(column: npt.NDArray[_Number], places: npt.NDArray[np.intp]) -> npt.NDArray[_Number]:
    """A column without the values at some places; not copied if there are no such places."""
    return np.delete(column, places) if places.size else column


def quantile(values: Float64Array, share: float) -> float:
    """Quantile of some values, shape (n,), n >= 1: numpy's, in a fifth of its time."""
    place = share * (values.size - 1)
    rank = int(place)
    parted = np.partition(values, rank)
    lower = float(parted[rank])
    upper = float(parted[rank + 1 :].min(initial=np.inf)) if place > rank else lower
    return lower + (place - rank) * (upper - lower)


def stretch_variances(values: Float64Array, length: int) -> Float64Array:
    """Variance within each stretch of `length` values, shape (n,) to (n / length,)."""
    variances = np.empty(values.size // length)
    for low in range(0, variances.size, _TOGETHER):
        part = values[low * length : (low + _TOGETHER) * length].reshape(-1, length).T.copy()
        part -= part.mean(axis=0)
        variances[low : low + _TOGETHER] = (part**2).sum(axis=0) / (length - 1)
    return variances


@dataclass(frozen=True)
class _Samples:
    centre_ns: Int64Array
    current_a: Float64Array
    voltage_v: Float64Array
    period_ns: int
    clipped: BoolArray

    def around(self, after: int, length_ns: int, least: int, factor: int) -> slice:
        """Samples before and after the space behind sample `after`, within `factor` times `length_ns`."""
        count = max(least, factor * round(length_ns / max(self.period_ns, 1)))
        return slice(max(after + 1 - count, 0), after + 1 + count)


def _gaps_by_sample(trace: PowerTrace, bad: npt.NDArray[np.intp], samples: _Samples) -> Iterator[tuple[int, list[Gap]]]:
    """Gaps grouped by the good sample before them; lost rows without a recorded gap are gaps too."""
    centre_ns = samples.centre_ns
    middles_ns = [gap.start_meter_ns + gap.duration_ns // 2 for gap in trace.gaps]
    before = np.searchsorted(centre_ns, np.array(middles_ns, np.int64), side="right") - 1
    known = list(zip(before.tolist(), trace.gaps, strict=True))
    explained = {after for after, _ in known}
    afters, counts = np.unique(bad - np.arange(bad.size) - 1, return_counts=True)
    for after, lost in zip(afters.tolist(), counts.tolist(), strict=True):
        if 0 <= after < centre_ns.size - 1 and after not in explained:
            gap = Gap.between(int(centre_ns[after]), int(centre_ns[after + 1]), lost, "no reason recorded")
            known.append((after, gap))
    known.sort(key=lambda pair: pair[0])
    for after, group in groupby(known, key=lambda pair: pair[0]):
        last_ns = int(centre_ns[after]) if after >= 0 else None
        next_ns = int(centre_ns[after + 1]) if after + 1 < centre_ns.size else None
        yield after, [_between_samples(gap, last_ns, next_ns) for _, gap in group]


def _between_samples(gap: Gap, last_ns: int | None, next_ns: int | None) -> Gap:
    """The gap, cut at the centres of the adjacent good samples; None at the trace's ends."""
    start_ns = gap.start_meter_ns if last_ns is None else max(gap.start_meter_ns, last_ns)
    end_ns = gap.end_meter_ns if next_ns is None else min(gap.end_meter_ns, next_ns)
    if (start_ns, end_ns) == (gap.start_meter_ns, gap.end_meter_ns):
        return gap
    charge_c = None if gap.charge_c is None else gap.charge_c * (end_ns - start_ns) / gap.duration_ns
    return Gap(start_ns, end_ns, gap.lost_samples, charge_c, gap.reason, gap.clipped_samples)


def _as_one(gaps: list[Gap]) -> Gap:
    """Adjacent gaps without a good sample between them as one gap; its charge is known if every part's is."""
    if len(gaps) == 1:
        return gaps[0]
    ordered = sorted(gaps, key=lambda gap: gap.start_meter_ns)
    touching = all(a.end_meter_ns == b.start_meter_ns for a, b in pairwise(ordered))
    charges = [gap.charge_c for gap in ordered if gap.charge_c is not None]
    return Gap(
        ordered[0].start_meter_ns,
        max(gap.end_meter_ns for gap in ordered),
        sum(gap.lost_samples for gap in ordered),
        sum(charges) if touching and len(charges) == len(ordered) else None,
        "; ".join(dict.fromkeys(gap.reason for gap in ordered)),
        sum(gap.clipped_samples for gap in ordered),
    )


def _tile(samples: _Samples, gaps: dict[int, Gap]) -> Cells:
    centre_ns, half_ns = samples.centre_ns, samples.period_ns // 2
    after = np.array(sorted(gaps), np.intp)
    bounds_ns = np.empty(centre_ns.size + 1, np.int64)
    between_ns = bounds_ns[1:-1]
    np.subtract(centre_ns[1:], centre_ns[:-1], out=between_ns)
    between_ns >>= 1
    between_ns += centre_ns[:-1]
    bounds_ns[0], bounds_ns[-1] = centre_ns[0] - half_ns, centre_ns[-1] + half_ns
    for index, gap in gaps.items():
        bounds_ns[index + 1] = gap.end_meter_ns
    ordered = [(index, gaps[index]) for index in after.tolist()]
    filled = [_fill(samples, index, gap) for index, gap in ordered]
    lost = (_lost_cell(samples, *one, one[0] + 1 + number) for number, one in enumerate(ordered))

    def with_gaps(column: npt.NDArray[_Number], of_gaps: list[Any]) -> npt.NDArray[_Number]:
        return np.insert(column, after + 1, of_gaps) if of_gaps else column

    return Cells(
        with_gaps(bounds_ns, [gap.start_meter_ns for _, gap in ordered]),
        with_gaps(samples.current_a, [fill[0] for fill in filled]),
        with_gaps(samples.voltage_v, [fill[1] for fill in filled]),
        tuple(lost),
        samples.period_ns,
        with_gaps(samples.clipped, [gap.clipped_samples > 0 for _, gap in ordered]),
    )


def _fill(samples: _Samples, after: int, gap: Gap) -> tuple[float, float]:
    """Mean current and voltage of a gap's cell."""
    near = samples.around(after, gap.duration_ns, 2, 1)
    voltage_v = float(np.mean(samples.voltage_v[near]))
    if gap.charge_c is not None:
        return gap.charge_c / (gap.duration_ns * NS), voltage_v
    return float(np.mean(samples.current_a[near])), voltage_v


def _lost_cell(samples: _Samples, after: int, gap: Gap, cell: int) -> LostCell:
    around = samples.current_a[samples.around(after, gap.duration_ns, AROUND_SAMPLES, AROUND_FACTOR)]
    enough = around.size >= AROUND_SAMPLES
    least, greatest = (float(around.min()), float(around.max())) if enough else (-np.inf, np.inf)
    at_an_end = not 0 <= after < samples.voltage_v.size - 1
    voltage_step_v = 0.0 if at_an_end else float(samples.voltage_v[after + 1] - samples.voltage_v[after])
    return LostCell(gap, cell, least, greatest, voltage_step_v)
