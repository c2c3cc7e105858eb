"""One run cut into windows: the energy of each, and all columns but the medium's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, background_s, changes_ns
from opjoule.attribution.columns import PartColumns
from opjoule.attribution.least_squares import inverse
from opjoule.attribution.overlap import SeenClock, Waits, Worked, operations_in, operations_seen_in
from opjoule.attribution.sensed_medium import SensedMedium
from opjoule.attribution.waits import long_ones, longest_work
from opjoule.attribution.window_groups import groups, stretch_edges_ns
from opjoule.attribution.windows import Windows
from opjoule.attribution.work import Work
from opjoule.energy.operations.operation_table import OperationTable
from opjoule.energy.step_integral import NS
from opjoule.energy.trace.power_trace import BoolArray, Float64Array, Int64Array

STEP_NS: Final = 40_000
FARTHEST_NS: Final = 160_000
SUPPLY_U_NS: Final = 50_000.0
"""Prior standard uncertainty of the delay of capacitors and regulators."""
OPERATIONS: Final = 1 << 17
"""Number of operations used to determine the delay."""
_NEAR: Final = 16


def delay_ns(
    edge_board_ns: Int64Array,
    above_j: Float64Array,
    operations: OperationTable,
    waits: Waits,
    map_u_ns: float,
) -> int:
    """Delay of the power at which neighbouring windows agree best with their operations."""
    first, last, chosen = _busiest(edge_board_ns, operations)
    edges_ns, energy_j = edge_board_ns[first : last + 1], above_j[first:last]
    if len(chosen) < 2 * _NEAR or energy_j.size < 4 * _NEAR:
        return 0
    tried_ns = np.arange(-FARTHEST_NS, FARTHEST_NS + 1, STEP_NS)
    left = np.array([_left(edges_ns - late_ns, energy_j, chosen, waits) for late_ns in tried_ns.tolist()])
    deviance = energy_j.size * np.log(left) + (tried_ns / math.hypot(SUPPLY_U_NS, map_u_ns)) ** 2
    return round(_lowest(tried_ns, deviance))


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


def misjudged(edge_board_ns: Int64Array, operations: OperationTable, waits: Waits) -> float:
    """Relative error with which neighbouring windows may misjudge the energy of operations of a mostly waiting client.

    If operations come at regular intervals, neighbours differ only by the operations at their edges, whose energy is on
    both sides; moving the edges by BLUR_NS shows how much that is. If operations come in bursts, one within a burst
    costs less than a single one: the number of those that woke the processor up is a column of its own, and BURSTS_U is
    left. 0 for a client that is engaged for more than half of its time.
    """
    first, last, chosen = _busiest(edge_board_ns, operations)
    edges_ns = edge_board_ns[first : last + 1]
    if engaged(operations) >= ENGAGED_MIN or edges_ns.size <= 4 * _NEAR:
        return 0.0
    single = chosen.select(woken(chosen))

    def apart(moved_ns: int) -> tuple[Float64Array, Float64Array]:
        """Operations in each window, and how many more than usual of them woke the processor up, less neighbours."""
        count, woke = (_number(edges_ns + moved_ns, some, waits) for some in (chosen, single))
        made = _apart(np.stack([count, woke - count * (woke.sum() / max(count.sum(), 1e-300))], axis=1))
        return made[:, 0], made[:, 1]

    count, more = apart(0)
    square = max(float(more @ more), 1e-300)

    def left(column: Float64Array) -> float:
        """Mean square of what the woken ones do not explain."""
        return float(np.mean((column - more * (float(column @ more) / square)) ** 2))

    varies = max(left(count), 1e-300)
    moved = (left(apart(-BLUR_NS)[0] - count) + left(apart(BLUR_NS)[0] - count)) / 2
    bursts = float(np.mean(count**2)) > BURSTS_FROM * len(chosen) / (edges_ns.size - 1)
    return min(math.hypot(moved / (2.0 * varies), BURSTS_U * bursts), 1.0)


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


def _apart(rows: Float64Array) -> Float64Array:
    """Windows less the mean of their group of _NEAR neighbours; the remainder at the end is dropped."""
    near = rows[: len(rows) // _NEAR * _NEAR].reshape(-1, _NEAR, rows.shape[1])
    return np.asarray((near - near.mean(axis=1, keepdims=True)).reshape(-1, rows.shape[1]), np.float64)


def _left(edges_ns: Int64Array, energy_j: Float64Array, operations: OperationTable, waits: Waits) -> float:
    """Mean square of the differences between neighbouring windows that counts and busy time leave unexplained."""
    count, busy_s = operations_in(edges_ns, operations, waits)
    used = np.flatnonzero(count.any(axis=0))
    apart = _apart(np.concatenate([count[:, used], busy_s[:, used], energy_j[:, None]], axis=1))
    scaled = apart[:, :-1] / np.maximum(np.sqrt(np.mean(apart[:, :-1] ** 2, axis=0)), 1e-300)
    moment = scaled.T @ apart[:, -1]
    square = float(apart[:, -1] @ apart[:, -1])
    return max((square - float(moment @ inverse(scaled.T @ scaled) @ moment)) / len(apart), 1e-300)


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
BURSTS_U: Final = float(__import__("os").environ.get("BU","0.25"))
"""Relative saving of an operation within a burst, compared with a single one that wakes the processor up."""
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
    def of(cls, work: Work, length_ns: int) -> RunWindows:
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
        idle_j = float(work.idle.power) * windows.duration_s
        board_j = windows.energy_j - idle_j
        if work.medium and work.medium.of_board:
            board_j = board_j - work.medium.above_j(windows.edge_board_ns)
        above_j = np.where(windows.sound, board_j, 0.0)
        one_thread = work.one_background_thread
        waits = longest_work(work.operations, work.counters, work.activities, one_thread=one_thread)
        map_u_ns = work.board_to_meter.u_ns(work.start_board_ns)
        late_ns = delay_ns(windows.edge_board_ns, above_j, work.operations, waits, map_u_ns)
        edge_ns = windows.edge_board_ns - late_ns
        syncs, medium = work.activities.get(SYNC), None
        if work.medium:
            medium = SensedMedium.of(work.medium, windows.edge_board_ns, late_ns, work.counters, syncs)
        long = long_ones(work.operations, waits)
        count, busy_s = worked = operations_in(edge_ns, work.operations, waits)
        seconds = background_s(edge_ns, work.activities, one_thread=one_thread)
        middle_ns = (windows.edge_board_ns[1:] + windows.edge_board_ns[:-1]) // 2
        settling = windows.edge_board_ns[:-1] >= work.work_end_board_ns
        group = groups(seconds, windows.duration_s, settling, np.searchsorted(stretch_ns, middle_ns))
        kinds = {work.operations.kinds[at]: at for at in np.flatnonzero(count.any(axis=0)).tolist()}
        activities = {name: column for name, column in seconds.items() if column.any()}
        strays = misjudged(edge_ns, work.operations, waits)
        single = work.operations.select(woken(work.operations)) if strays else work.operations.select(slice(0))

        def columns_of(number_in: Callable[[OperationTable], Worked], worked: Worked) -> PartColumns:
            of_long, of_single = number_in(long), number_in(single).number.sum(axis=1)
            return PartColumns.of(
                kinds, worked, of_long, of_single, activities, group, strays, waiting=waits.frequent
            )

        columns = columns_of(lambda some: operations_in(edge_ns, some, waits), worked)
        waited_s = float(work.operations.duration_ns.sum(dtype=np.int64)) * NS - float(busy_s.sum())
        run_s = (work.work_end_board_ns - work.start_board_ns) * NS
        waited = max(waited_s, 0.0) / (run_s * max(work.operations.threads, 1))
        if not SEEN_MIN <= work.seen_fraction < 1.0:
            return cls(windows, above_j, columns, edge_ns, None, medium, waited)
        bound_ns = work.board_to_meter.inverse().to_target(work.cells.bounds_ns) - late_ns
        clock = SeenClock.of(bound_ns, work.seen_fraction)

        def seen_in(some: OperationTable) -> Worked:
            return operations_seen_in(edge_ns, some, waits, clock)

        seen_columns = columns_of(seen_in, seen_in(work.operations))
        return cls(windows, above_j, columns, edge_ns, seen_columns, medium, waited)
