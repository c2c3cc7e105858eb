"""One run cut into windows: the energy of each, and all columns but the medium's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, background_s, changes_ns
from opjoule.attribution.attributed_run import Work
from opjoule.attribution.columns import PartColumns, beyond_mean
from opjoule.attribution.least_squares import inverse
from opjoule.attribution.overlap import SeenClock, Waits, Worked, operations_in, operations_seen_in
from opjoule.attribution.sensed_medium import SensedMedium
from opjoule.attribution.waits import long_ones, longest_work
from opjoule.attribution.window_groups import Groups, IntArray, groups, stretch_edges_ns
from opjoule.attribution.windows import Windows
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

STEP_NS: Final = 40_000
FARTHEST_NS: Final = 160_000
SUPPLY_U_NS: Final = 50_000.0
"""Prior standard uncertainty of the delay of capacitors and regulators."""
OPERATIONS: Final = 1 << 17
"""Number of operations of a run used to determine the delay."""
OPERATIONS_MIN: Final = 32
"""Fewest operations of a run that can show the delay;"""
WINDOWS_MIN: Final = 64
"""... and fewest windows with them, which can also show how far neighbours misjudge."""


@dataclass(frozen=True)
class CutRun:
    """One run cut into n windows."""

    work: Work
    windows: Windows
    above_j: Float64Array
    """Energy of each window above idle, shape (n,), without the energy that the medium drew from the board's supply
    according to its sensor; 0 where unknown."""
    waits: Waits
    stretch_ns: Int64Array
    """Edges of the stretches whose windows are at about the same time."""

    @classmethod
    def of(cls, work: Work, length_ns: int) -> CutRun:
        """Windows of at most one length."""
        counted_ns = work.counters.board_ns if work.counters else np.zeros(0, np.int64)
        stretch_ns = stretch_edges_ns(work.start_board_ns, work.end_board_ns, length_ns, counted_ns)
        changes = changes_ns(work.activities, CHANGE_PERIODS * work.cells.period_ns, CHANGES_MAX)
        windows = Windows.cut(
            work.cells,
            work.board_to_meter,
            work.start_board_ns,
            work.end_board_ns,
            length_ns,
            np.concatenate([changes, stretch_ns, [work.work_end_board_ns]]),
        )
        board_j = windows.energy_j - float(work.idle.power) * windows.duration_s
        if work.medium and work.medium.of_board:
            board_j = board_j - work.medium.above_j(windows.edge_board_ns)
        one_thread = work.one_background_thread
        waits = longest_work(work.operations, work.counters, work.activities, one_thread=one_thread)
        return cls(work, windows, np.where(windows.sound, board_j, 0.0), waits, stretch_ns)

    def seconds(self, edge_ns: Int64Array) -> Mapping[str, Float64Array]:
        """Seconds of each activity between the edges, shape (n,) each."""
        return background_s(edge_ns, self.work.activities, one_thread=self.work.one_background_thread)

    def group(self, seconds: Mapping[str, Float64Array]) -> Groups:
        """Groups of the windows by these seconds of activities."""
        edge_ns = self.windows.edge_board_ns
        settling = edge_ns[:-1] >= self.work.work_end_board_ns
        stretch = np.searchsorted(self.stretch_ns, (edge_ns[1:] + edge_ns[:-1]) // 2)
        return groups(seconds, self.windows.duration_s, settling, stretch)

    @cached_property
    def near(self) -> IntArray:
        """Number of each window's group of neighbours before the delay of the power is known, shape (n,)."""
        return self.group(self.seconds(self.windows.edge_board_ns)).near


def delay_ns(runs: Sequence[CutRun]) -> int:
    """Delay of the power at which neighbouring windows agree best with their work; it is the same in all runs."""
    tried_ns = np.arange(-FARTHEST_NS, FARTHEST_NS + 1, STEP_NS)
    deviances = [made for run in runs if (made := _deviance(run, tried_ns)) is not None]
    if not deviances:
        return 0
    map_u_ns = max(run.work.board_to_meter.u_ns(run.work.start_board_ns) for run in runs)
    deviance = np.sum(deviances, axis=0) + (tried_ns / math.hypot(SUPPLY_U_NS, map_u_ns)) ** 2
    return round(_lowest(tried_ns, deviance))


def _deviance(run: CutRun, tried_ns: Int64Array) -> Float64Array | None:
    """Minus twice the log-likelihood of a run's neighbours for delays, up to a constant; None without enough work."""
    first, last, chosen = _busiest(run.windows.edge_board_ns, run.work.operations)
    if len(chosen) < OPERATIONS_MIN or last - first < WINDOWS_MIN:
        return None
    edges_ns, energy_j = run.windows.edge_board_ns[first : last + 1], run.above_j[first:last]
    apart = Apart(run.near[first:last], edges_ns)

    def left(late_ns: int) -> float:
        """Mean square of the differences that operations and activities leave unexplained."""
        count, busy_s = operations_in(edges_ns - late_ns, chosen, run.waits)
        used = np.flatnonzero(count.any(axis=0))
        beside = [column for column in run.seconds(edges_ns - late_ns).values() if column.any()]
        return apart.left(np.column_stack([count[:, used], busy_s[:, used], *beside]), energy_j)

    return np.asarray(energy_j.size * np.log([left(late_ns) for late_ns in tried_ns.tolist()]), np.float64)


class Apart:
    """Differences between windows and their neighbours, as the equations within groups have them."""

    def __init__(self, near: IntArray, edge_ns: Int64Array) -> None:
        """`near`: number of each window's group of neighbours, shape (n,); `edge_ns`: of windows, shape (n + 1,)."""
        self._near = np.unique(near, return_inverse=True)[1]
        self._root = np.sqrt(np.diff(edge_ns) / np.diff(edge_ns).mean())
        self._parts = np.bincount(self._near, self._root**2)

    def of(self, columns: Float64Array) -> Float64Array:
        """Columns less what windows of this length have among their neighbours, shape (n,) or (n, k)."""
        by_column = np.atleast_2d(columns.T)
        usual = [(np.bincount(self._near, column) / self._parts)[self._near] for column in by_column]
        apart = [column / self._root - self._root * mean for column, mean in zip(by_column, usual, strict=True)]
        return np.asarray(np.stack(apart, axis=1).reshape(columns.shape), np.float64)

    def left(self, columns: Float64Array, of: Float64Array) -> float:
        """Mean square of a column, shape (n,), that others, shape (n, k), leave unexplained."""
        apart, wanted = self.of(columns), self.of(of)
        scaled = apart / np.maximum(np.sqrt(np.mean(apart**2, axis=0)), 1e-300)
        moment = scaled.T @ wanted
        explained = float(moment @ inverse(scaled.T @ scaled) @ moment)
        return max((float(wanted @ wanted) - explained) / wanted.size, 1e-300)


def engaged(operations: OperationTable) -> float:
    """Fraction of time in which a client's threads have an operation under way, from 0 to 1; 1 without operations.

    Waiting inside an operation, such as a stall of the engine, is included: the client itself does not wait then.
    """
    if not len(operations):
        return 1.0
    span_ns = operations.board_ns[-1] + operations.duration_ns[-1] - operations.board_ns[0]
    return float(operations.duration_ns.sum(dtype=np.int64)) / max(operations.threads * float(span_ns), 1.0)


def woken(operations: OperationTable) -> BoolArray:
    """Whether each operation begins after a pause of its thread, so that it woke the processor up, shape (n,)."""
    order = np.argsort(operations.thread, kind="stable") if operations.threads > 1 else np.arange(len(operations))
    begin_ns, thread = operations.board_ns[order], operations.thread[order]
    paused = begin_ns[1:] - (begin_ns + operations.duration_ns[order])[:-1] > PAUSE_NS
    made = np.ones(len(operations), np.bool_)
    made[order[1:]] = paused | (thread[1:] != thread[:-1])
    return made


def single(operations: OperationTable) -> OperationTable | None:
    """The operations that woke the processor up; None if nearly all did, or none."""
    part = float(woken(operations.select(slice(0, OPERATIONS))).mean())
    return operations.select(woken(operations)) if ALL_ALIKE < part < 1.0 - ALL_ALIKE else None


def misjudged(edge_board_ns: Int64Array, near: IntArray, operations: OperationTable, waits: Waits) -> float:
    """Relative error with which neighbouring windows may misjudge the energy of operations of a mostly waiting client.

    If operations come at regular intervals, neighbours differ only by the operations at their edges, whose energy is on
    both sides; moving the edges by BLUR_NS shows how much that is at most. If operations come in bursts, one within a
    burst costs less than a single one: the number of those that woke the processor up is a column of its own, and
    BURSTS_U is left. 0 for a client that is engaged for more than half of its time.
    """
    first, last, chosen = _busiest(edge_board_ns, operations)
    if engaged(operations) >= ENGAGED_MIN or last - first < WINDOWS_MIN:
        return 0.0
    edges_ns = edge_board_ns[first : last + 1]
    apart = Apart(near[first:last], edges_ns)
    count, later, sooner = (_number(edges_ns + moved_ns, chosen, waits) for moved_ns in (0, BLUR_NS, -BLUR_NS))
    more = beyond_mean(_number(edges_ns, chosen.select(woken(chosen)), waits), count)[:, None]
    blurred = (apart.left(more, later - count) + apart.left(more, sooner - count)) / 2
    bursts = float(np.mean(apart.of(count) ** 2)) > BURSTS_FROM * len(chosen) / count.size
    bound = blurred / (2.0 * apart.left(more, count))  # rectangular: JCGM 100:2008, 4.3.7
    return min(math.hypot(bound / math.sqrt(3.0), BURSTS_U * bursts), 1.0)


def _number(edge_ns: Int64Array, operations: OperationTable, waits: Waits) -> Float64Array:
    """Number of operations of all kinds in each window, shape (n,)."""
    return np.asarray(operations_in(edge_ns, operations, waits).number.sum(axis=1), np.float64)


def _busiest(edge_board_ns: Int64Array, operations: OperationTable) -> tuple[int, int, OperationTable]:
    """First and last edge of a stretch in the middle with OPERATIONS operations, or of all windows; its operations."""
    begun = np.searchsorted(operations.board_ns, edge_board_ns)
    middle = (begun[0] + begun[-1]) // 2
    ends = np.searchsorted(begun, [middle - OPERATIONS // 2, middle + OPERATIONS // 2])
    first, last = int(ends[0]), min(int(ends[1]), edge_board_ns.size - 1)
    beyond_ns = [edge_board_ns[first] - FARTHEST_NS, edge_board_ns[last] + FARTHEST_NS]
    return first, last, operations.select(slice(*np.searchsorted(operations.board_ns, beyond_ns)))


def _lowest(x: Int64Array, y: Float64Array) -> float:
    """Minimum of the parabola through the least value and its neighbours."""
    at = int(np.argmin(y))
    if at in {0, y.size - 1}:
        return float(x[at])
    before, here, after = y[at - 1 : at + 2].tolist()
    bend = before - 2 * here + after
    return float(x[at]) + (STEP_NS * (before - after) / (2 * bend) if bend > 0 else 0.0)


ENGAGED_MIN: Final = 0.5
"""Fraction of time with operations below which a client counts as mostly waiting."""
BLUR_NS: Final = 100_000
"""Greatest distance between a waiting client's operation and its energy, in addition to the delay. The processor wakes
up before the operation, capacitors smooth the energy, and a meter that converts half of the time extends a conversion
to its whole period."""
BURSTS_FROM: Final = 2.0
"""Variance over mean of the number of operations in neighbouring windows from which they count as coming in bursts;
it is 1 for random arrivals."""
BURSTS_U: Final = 0.03
"""Relative error that is left for operations in bursts, beside the column of those that woke the processor up: what a
single one draws beyond one within a burst also depends on how long the processor has slept."""
ALL_ALIKE: Final = 0.01
"""Fraction of operations within bursts, or of single ones, below which it does not matter what they draw beyond the
others."""
PAUSE_NS: Final = 20_000
"""Pause of a thread from which it has slept: Linux wakes it up at least its timer slack later, 50 us (prctl(2))."""
CHANGE_PERIODS: Final = 2
"""Shortest background work, in sample periods, with windows of its own."""
CHANGES_MAX: Final = 1 << 14
SEEN_MIN: Final = 0.25
"""Least fraction of the time that a meter must convert for time stamps to show which part of an operation it saw."""


@dataclass(frozen=True)
class RunWindows:
    """The windows of one run and its settle, n of them."""

    windows: Windows
    above_j: Float64Array
    """Energy of each window above idle, shape (n,), without the energy that the medium drew from the board's supply
    according to its sensor; 0 where unknown."""
    columns: PartColumns
    """All columns but the medium's."""
    edge_ns: Int64Array
    """Edges of the windows by the board's clock, shifted by the power's delay, shape (n + 1,)."""
    seen: PartColumns | None
    """Columns with each operation counted as the meter saw it; None if it converts always or less than SEEN_MIN."""
    medium: SensedMedium | None
    """None without a sensor in the medium's supply."""
    waited: float
    """Fraction of the run in which operations waited, mean of the threads, from 0 to 1."""

    @classmethod
    def of(cls, run: CutRun, late_ns: int) -> RunWindows:
        """The columns of a run's windows, for a delay of the power."""
        work, windows, waits = run.work, run.windows, run.waits
        edge_ns = windows.edge_board_ns - late_ns
        syncs, medium = work.activities.get(SYNC), None
        if work.medium:
            medium = SensedMedium.of(work.medium, windows.edge_board_ns, late_ns, work.counters, syncs)
        long = long_ones(work.operations, waits)
        count, busy_s = worked = operations_in(edge_ns, work.operations, waits)
        seconds = run.seconds(edge_ns)
        group = run.group(seconds)
        kinds = {work.operations.kinds[at]: at for at in np.flatnonzero(count.any(axis=0)).tolist()}
        activities = {name: column for name, column in seconds.items() if column.any()}
        strays = misjudged(windows.edge_board_ns, run.near, work.operations, waits)
        alone = single(work.operations)

        def columns_of(number_in: Callable[[OperationTable], Worked], worked: Worked) -> PartColumns:
            woke = None if alone is None else number_in(alone).number
            often = waits.frequent
            return PartColumns.of(kinds, worked, number_in(long), activities, group, strays, woken=woke, waiting=often)

        columns = columns_of(lambda some: operations_in(edge_ns, some, waits), worked)
        waited_s = float(work.operations.duration_ns.sum(dtype=np.int64)) * NS - float(busy_s.sum())
        run_s = (work.work_end_board_ns - work.start_board_ns) * NS
        waited = max(waited_s, 0.0) / (run_s * max(work.operations.threads, 1))
        if not SEEN_MIN <= work.seen_fraction < 1.0:
            return cls(windows, run.above_j, columns, edge_ns, None, medium, waited)
        bound_ns = work.board_to_meter.inverse().to_target(work.cells.bounds_ns) - late_ns
        clock = SeenClock.of(bound_ns, work.seen_fraction)

        def seen_in(some: OperationTable) -> Worked:
            return operations_seen_in(edge_ns, some, waits, clock)

        seen_columns = columns_of(seen_in, seen_in(work.operations))
        return cls(windows, run.above_j, columns, edge_ns, seen_columns, medium, waited)
