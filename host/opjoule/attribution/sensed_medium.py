"""The medium's energy in each window from its own sensor, by sync, write-back and tail: docs/method/attribution.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from opjoule.attribution.activities import Intervals
from opjoule.attribution.counters import Counters, joined
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import IdlePower, MarginalEnergy
from opjoule.energy.cells import Cells
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

STEP_CELLS: Final = 4
"""Number of samples whose mean power is compared with the tail's, to average out noise."""
SEEN_U: Final = 4.0
"""Excess of pauses over idle, in standard uncertainties of idle, from which the medium counts as having a tail."""
IntArray = npt.NDArray[np.intp]
Range = tuple[float, float]


@dataclass(frozen=True)
class MediumTrace:
    """Trace of a sensor in the medium's own supply, over one run and its settle."""

    cells: Cells
    board_to_meter: ClockMap
    idle: IdlePower
    """Idle power of the medium."""
    marginal: Callable[[], MarginalEnergy]
    """The medium's energy of run and settle above idle."""
    of_board: bool
    """Whether the medium draws from the board's supply, so that its energy is part of the board's."""

    def above_j(self, moment_board_ns: Int64Array) -> Float64Array:
        """Energy above idle between successive times of the board's clock, shape (n + 1,) to (n,)."""
        edge_ns = self.board_to_meter.to_target(moment_board_ns)
        lasts_s = np.diff(moment_board_ns) * NS
        rate = lasts_s / (np.maximum(np.diff(edge_ns), 1) * NS)
        return self.cells.power.between_edges(edge_ns) * rate - float(self.idle.power) * lasts_s


@dataclass(frozen=True)
class SensedMedium:
    """The medium's energy above idle from the sensor in its supply, in n windows."""

    drawn_j: Float64Array
    """shape (n,)"""
    waited_j: Float64Array
    """Part of it during syncs, shape (n,)."""
    tail_j: Float64Array
    """Part of it in the tail outside of syncs, the middle of its range, shape (n,)."""
    waited_range_j: Range
    """Bounds of `waited_j` in all windows: if a sync begins or ends within a sample, it is unknown on which side of
    that moment the sample's energy was."""
    tail_range_j: Range
    """Bounds of `tail_j` in all windows."""
    waited_part: float
    """Fraction of the time spent in syncs."""

    @classmethod
    def of(
        cls,
        medium: MediumTrace,
        edge_board_ns: Int64Array,
        late_ns: int,
        counters: Counters | None,
        syncs: Intervals | None,
    ) -> SensedMedium:
        """Energy in the windows of one run; the power lags `late_ns` behind the board's time stamps."""
        pieces = _Pieces.of(medium, edge_board_ns, late_ns, counters, syncs)
        least_j, most_j = _tail_range_j(pieces, medium.idle, counters)
        windows = pieces.window
        return cls(
            pieces.summed(windows, pieces.energy_j),
            pieces.summed(windows, pieces.energy_j * pieces.waited),
            pieces.summed(windows, (least_j + most_j) / 2),
            _waited_range_j(pieces),
            (float(least_j.sum()), float(most_j.sum())),
            float(pieces.lasts_s @ pieces.waited / pieces.lasts_s.sum()),
        )

    @classmethod
    def joined(cls, runs: Sequence[SensedMedium]) -> SensedMedium:
        """Several runs as one."""

        def total(ranges: Sequence[Range]) -> Range:
            return sum(low for low, _ in ranges), sum(high for _, high in ranges)

        return cls(
            np.concatenate([run.drawn_j for run in runs]),
            np.concatenate([run.waited_j for run in runs]),
            np.concatenate([run.tail_j for run in runs]),
            total([run.waited_range_j for run in runs]),
            total([run.tail_range_j for run in runs]),
            float(np.average([run.waited_part for run in runs], weights=[run.drawn_j.size for run in runs])),
        )


@dataclass(frozen=True)
class _Pieces:
    """Stretches of constant power, within one sample of the medium's sensor and between events, shape (m,) each."""

    energy_j: Float64Array
    """Energy above idle."""
    lasts_s: Float64Array
    window: IntArray
    cell: IntArray
    sampled: IntArray
    """Number of the counters' samples up to each stretch."""
    waited: BoolArray
    """Whether a sync is in progress."""

    @classmethod
    def of(
        cls,
        medium: MediumTrace,
        edge_board_ns: Int64Array,
        late_ns: int,
        counters: Counters | None,
        syncs: Intervals | None,
    ) -> _Pieces:
        nowhere = np.zeros(0, np.int64)
        waits = syncs.merged if syncs and syncs.start_ns.size else Intervals(nowhere, nowhere)
        begins_ns, ends_ns = waits.start_ns + late_ns, waits.end_ns + late_ns
        read_ns = counters.board_ns + late_ns if counters else nowhere
        bound_ns = medium.board_to_meter.inverse().to_target(medium.cells.bounds_ns)
        changes_ns = np.concatenate([begins_ns, ends_ns, read_ns, bound_ns])
        inside = (changes_ns > edge_board_ns[0]) & (changes_ns < edge_board_ns[-1])
        moment_ns = joined(edge_board_ns, np.sort(changes_ns[inside]))
        middle_ns = moment_ns[:-1] + np.diff(moment_ns) // 2

        def before(starts_ns: Int64Array) -> IntArray:
            return np.asarray(np.searchsorted(starts_ns, middle_ns, "right"), np.intp)

        return cls(
            medium.above_j(moment_ns),
            np.diff(moment_ns) * NS,
            before(edge_board_ns) - 1,
            before(bound_ns),
            before(read_ns),
            before(begins_ns) > before(ends_ns),
        )

    def summed(self, labels: IntArray, values: Float64Array) -> Float64Array:
        """Sums of values, shape (m,), by label, an integer from 0 on."""
        return np.asarray(np.bincount(labels, values), np.float64)


def _waited_range_j(pieces: _Pieces) -> Range:
    """Least and greatest energy during syncs: at any instant the medium draws between zero and its greatest power."""
    cell = pieces.cell - pieces.cell[0]
    energy_j, lasts_s = (pieces.summed(cell, values) for values in (pieces.energy_j, pieces.lasts_s))
    waited_s = pieces.summed(cell, pieces.lasts_s * pieces.waited)
    cut = (waited_s > 0.0) & (waited_s < lasts_s * (1.0 - 1e-9))
    most_w = float(np.max(energy_j / np.maximum(lasts_s, 1e-12), initial=0.0, where=lasts_s > lasts_s.max() / 2))
    known_j = float(energy_j[(waited_s > 0.0) & ~cut].sum())
    drawn_j, inside_s, outside_s = np.maximum(energy_j[cut], 0.0), waited_s[cut], (lasts_s - waited_s)[cut]
    least_j = np.maximum(drawn_j - most_w * outside_s, 0.0).sum()
    return known_j + float(least_j), known_j + float(np.minimum(drawn_j, most_w * inside_s).sum())


def _tail_range_j(pieces: _Pieces, idle: IdlePower, counters: Counters | None) -> tuple[Float64Array, Float64Array]:
    """Bounds of the tail's energy in each piece, shape (m,) each.

    All energy counts for the tail if no byte was written or read within a sample of the counters on either side, and
    no sync came just before. Elsewhere the upper bound is the tail's power. The lower bound is the remainder if the
    medium was busy at the moments of greatest power, for as long as its bytes take at the highest observed rate.
    """
    alone = ~pieces.waited
    alone_j = pieces.energy_j * alone
    if counters is None:
        return np.zeros(alone_j.size), alone_j
    near_s = np.convolve(np.concatenate([[0.0], counters.moving_s, [0.0]]), np.ones(3))[1:-1]
    waits_s = np.bincount(pieces.sampled, pieces.lasts_s * pieces.waited, near_s.size)
    flushes_s = waits_s + np.append(0.0, waits_s[:-1])
    still = (near_s <= 0.0) & (flushes_s <= 0.0)
    busy_s = near_s + flushes_s
    _, step = np.unique(pieces.cell // STEP_CELLS * near_s.size + pieces.sampled, return_inverse=True)
    energy_j, lasts_s = pieces.summed(step, alone_j), pieces.summed(step, pieces.lasts_s * alone)
    sampled = np.zeros(energy_j.size, np.intp)
    sampled[step] = pieces.sampled
    power_w = energy_j / np.maximum(lasts_s, 1e-12)
    tail_w = _tail_w(power_w[still[sampled]], lasts_s[still[sampled]], idle)
    left = 1.0 - _busiest(sampled, power_w, lasts_s, busy_s)
    most_j = np.where(still[sampled], energy_j, np.minimum(power_w, tail_w) * lasts_s)
    least_j = np.where(still[sampled], energy_j, np.minimum(energy_j * left, most_j))
    share = np.where(alone, pieces.lasts_s / np.maximum(lasts_s[step], 1e-12), 0.0)
    return least_j[step] * share, most_j[step] * share


def _tail_w(power_w: Float64Array, lasts_s: Float64Array, idle: IdlePower) -> float:
    """Power of the tail from steps within pauses; infinite if there are none."""
    drawn_j, all_s = float(power_w @ lasts_s), float(lasts_s.sum())
    idle_u_j = idle.standard_u_w * all_s + idle.noise_w_root_s * np.sqrt(all_s)
    if drawn_j <= SEEN_U * idle_u_j:
        return np.inf
    usual_w = float(power_w**2 @ lasts_s) / drawn_j
    high = power_w > usual_w / 2
    return float(np.average(power_w[high], weights=lasts_s[high]))


def _busiest(sampled: IntArray, power_w: Float64Array, lasts_s: Float64Array, busy_s: Float64Array) -> Float64Array:
    """Busy part of each step if the medium is busy when it draws most, for `busy_s` between two samples."""
    order = np.lexsort((-power_w, sampled))
    sorted_samples, sorted_s = sampled[order], lasts_s[order]
    before_s = np.cumsum(sorted_s) - sorted_s
    first = np.flatnonzero(np.append(True, sorted_samples[1:] != sorted_samples[:-1]))
    before_s -= np.repeat(before_s[first], np.diff(np.append(first, sorted_samples.size)))
    part = np.clip((busy_s[sorted_samples] - before_s) / np.maximum(sorted_s, 1e-12), 0.0, 1.0)
    unsorted = np.empty(part.size)
    unsorted[order] = part
    return unsorted
