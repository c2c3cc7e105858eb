"""Overlap of many intervals with many windows, from cumulative sums alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

ROWS: Final = 1 << 15
"""Operations per step of the calculation: their arrays stay in the processor's cache."""
SEEN_ROWS: Final = 1 << 20
"""The same for a meter that converts for part of the time, which compares each step with all edges."""
SAMPLED: Final = 100_000
"""Number of sampled operations that give the usual durations."""
WORKING: Final = 3.0
"""Factor between a long operation that still works and a percentile of its kind; one that takes longer waits."""
GAP_PERIODS: Final = 1.5


def overlap_s(edge_ns: Int64Array, start_ns: Int64Array, end_ns: Int64Array) -> Float64Array:
    """Seconds of all intervals in each window; simultaneous intervals add up; `edge_ns` increases."""
    return np.diff(_elapsed(edge_ns, start_ns, end_ns, np.ones(start_ns.size))) * NS


def _elapsed(edge_ns: Int64Array, start_ns: Int64Array, end_ns: Int64Array, weight: Float64Array) -> Float64Array:
    """Weighted time [ns] of intervals up to each edge: sum of w (t - start) less w (t - end)."""
    return _since(edge_ns, start_ns, weight) - _since(edge_ns, end_ns, weight)


def _since(edge_ns: Int64Array, moment_ns: Int64Array, weight: Float64Array) -> Float64Array:
    order = np.argsort(moment_ns, kind="stable")
    origin_ns = edge_ns[0]
    moments = (moment_ns[order] - origin_ns).astype(np.float64)
    weights = weight[order]
    before = np.searchsorted(moment_ns[order], edge_ns)
    total = np.concatenate([[0.0], np.cumsum(weights)])[before]
    moment = np.concatenate([[0.0], np.cumsum(weights * moments)])[before]
    return np.asarray(total * (edge_ns - origin_ns) - moment, np.float64)


@dataclass(frozen=True)
class SeenClock:
    """Clock of a meter that converts the current during only a part of each sample period.

    It agrees with the board's clock at the bounds of cells, runs faster during a conversion and stands still otherwise.
    The integral of power over this clock is the energy that the meter reports.
    """

    board_ns: Int64Array
    """Bounds of cells, and start and end of the conversion in each, shape (3 m + 1,), not falling."""
    seen_ns: Int64Array
    """Readings of this clock at those moments, shape (3 m + 1,)."""

    @classmethod
    def of(cls, bound_ns: Int64Array, seen_fraction: float) -> SeenClock:
        """Clock with conversions in the middle of cells, bounds on the board's clock; even in gaps (longer cells)."""
        length_ns = np.diff(bound_ns)
        before_ns = np.rint(length_ns * ((1.0 - seen_fraction) / 2.0)).astype(np.int64)
        before_ns[length_ns > GAP_PERIODS * np.median(length_ns)] = 0
        knots = (bound_ns[:-1], bound_ns[:-1] + before_ns, bound_ns[1:] - before_ns)
        shown = (bound_ns[:-1], bound_ns[:-1], bound_ns[1:])
        return cls(
            np.append(np.stack(knots, axis=1).ravel(), bound_ns[-1]),
            np.append(np.stack(shown, axis=1).ravel(), bound_ns[-1]),
        )

    def at(self, board_ns: Int64Array) -> Int64Array:
        """Readings of this clock at times of the board's clock; outside the cells both are equal."""
        origin_ns = self.board_ns[0]
        shown_ns = np.interp(board_ns - origin_ns, self.board_ns - origin_ns, self.seen_ns - origin_ns)
        beyond = (board_ns < origin_ns) | (board_ns > self.board_ns[-1])
        return np.where(beyond, board_ns, np.rint(shown_ns).astype(np.int64) + origin_ns)


@dataclass(frozen=True)
class Waits:
    """Longest active time of an operation of each kind; the rest of a longer one is waiting."""

    longest_ns: Int64Array
    """shape (kinds,)"""
    frequent: bool = False
    """Whether many operations wait, so that it matters what a wait itself costs."""

    @classmethod
    def of(cls, operations: OperationTable, fraction: float) -> Waits:
        """WORKING times the duration that a fraction (0 to 1) of the operations of each kind does not exceed."""
        some = sampled(operations)
        longest = [
            WORKING * float(np.quantile(duration_ns, fraction)) if duration_ns.size else 0.0
            for duration_ns in (some.duration_ns[some.kind == kind] for kind in range(len(operations.kinds)))
        ]
        return cls(np.array(longest).astype(np.int64))


class Worked(NamedTuple):
    """Operations by window and kind."""

    number: Float64Array
    """shape (n, kinds)"""
    busy_s: Float64Array
    """Seconds for which they worked, shape (n, kinds)."""


def sampled(operations: OperationTable) -> OperationTable:
    """At least SAMPLED of the operations and less than twice as many, evenly spread; all if there are fewer."""
    every = len(operations) // SAMPLED
    return operations.select(np.arange(0, len(operations), every)) if every > 1 else operations


def operations_seen_in(edge_ns: Int64Array, operations: OperationTable, waits: Waits, seen: SeenClock) -> Worked:
    """Operations and busy seconds as `operations_in`, each weighted by the part that the meter converted."""
    count = np.zeros((edge_ns.size - 1, len(operations.kinds)))
    busy_ns = np.zeros_like(count)
    for low in range(0, len(operations), SEEN_ROWS):
        some = operations.select(slice(low, low + SEEN_ROWS))
        _add_across(edge_ns, some, waits, count, busy_ns, seen)
    return Worked(count, busy_ns * NS)


def operations_in(edge_ns: Int64Array, operations: OperationTable, waits: Waits) -> Worked:
    """Operations and their busy seconds by window and kind.

    An operation across an edge is split between both windows in proportion to its time in each. `operations` are sorted
    by start; those that neither start nor end inside the windows are ignored.
    """
    kinds, windows = len(operations.kinds), edge_ns.size - 1
    first = np.searchsorted(operations.board_ns, edge_ns)
    count, busy_ns = np.zeros(windows * kinds), np.zeros(windows * kinds)
    across = [np.arange(int(first[0]))]
    for low in range(int(first[0]), int(first[-1]), ROWS):
        high = min(low + ROWS, int(first[-1]))
        # every operation counts whole in the window that it starts in; those across an edge are taken out again
        begun = (np.searchsorted(first, [low, high - 1], "right") - 1).tolist()
        around = np.arange(begun[0], begun[1] + 1)
        lengths = np.diff(np.concatenate([[low], first[around[1:]], [high]]))
        ends_ns = operations.board_ns[low:high] + operations.duration_ns[low:high]
        over = np.flatnonzero(ends_ns > np.repeat(edge_ns[around + 1], lengths))
        kind = operations.kind[low:high]
        cell = np.repeat((around - begun[0]) * kinds, lengths) + kind
        worked_ns = np.minimum(operations.duration_ns[low:high], waits.longest_ns.take(kind))
        some = slice(begun[0] * kinds, (begun[1] + 1) * kinds)
        size = some.stop - some.start
        count[some] += np.bincount(cell, minlength=size) - np.bincount(cell[over], minlength=size)
        busy_ns[some] += np.bincount(cell, worked_ns, size) - np.bincount(cell[over], worked_ns[over], size)
        across.append(over + low)
    counts, busy = count.reshape(windows, kinds), busy_ns.reshape(windows, kinds)
    _add_across(edge_ns, operations.select(np.concatenate(across)), waits, counts, busy)
    return Worked(counts, busy * NS)


def _add_across(
    edge_ns: Int64Array,
    operations: OperationTable,
    waits: Waits,
    count: Float64Array,
    busy_ns: Float64Array,
    seen: SeenClock | None = None,
) -> None:
    """Adds operations that may cross an edge, each by its part on either side, or by the converted part of that."""
    end_ns = operations.board_ns + np.maximum(operations.duration_ns, 1)
    for kind in np.unique(operations.kind).tolist():
        of_kind = operations.kind == kind
        start, end = operations.board_ns[of_kind], end_ns[of_kind]
        length_ns = (end - start).astype(np.float64)
        if seen:
            start, end = seen.at(start), seen.at(end)
        count[:, kind] += np.diff(_elapsed(edge_ns, start, end, 1.0 / length_ns))
        busy_part = np.minimum(waits.longest_ns[kind] / length_ns, 1.0)
        busy_ns[:, kind] += np.diff(_elapsed(edge_ns, start, end, busy_part))
