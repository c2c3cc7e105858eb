"""The time for which an operation works; the rest of a longer one is waiting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, Intervals, background_s
from opjoule.attribution.counters import Counters
from opjoule.attribution.least_squares import non_negative
from opjoule.attribution.overlap import WORKING, Waits, operations_in, sampled
from opjoule.energy.operations.operation_table import PART_ROWS, OperationTable
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

RARE: Final = 0.99
"""Fraction of operations that do not wait if waits are rare."""
FREQUENT: Final = (0.95, 0.9, 0.75, 0.5)
"""Fractions that are tried to find out whether waits are frequent."""
BETTER: Final = 2.0
"""Factor by which a fraction of FREQUENT must lower the sum of squares, compared with RARE, for frequent waits."""
ON_PROCESSOR: Final = 0.7
"""Processor time [s] of a second for which operations are busy with RARE, from which waits are not frequent. It is 0.1
to 0.4 s where writers sleep, and 0.9 to 1.2 s where other programs interrupted them now and then."""
WAKE_NS: Final = 100_000.0
"""Greatest work of going to sleep and waking up [ns]: two context switches, a timer interrupt and cold caches. A
Raspberry Pi 4 returns from a sleep 0.067 to 0.105 ms late, 0.05 ms of timer slack (prctl(2)) included. Source:
https://www.faschingbauer.me/trainings/material/soup/linux/sysprog/scheduling/wakup-latency.html"""
APART: Final = 10.0
"""Ratio of the 99th percentile to the median up to which no lower limit is tried for a kind."""
INTERVALS: Final = 400
"""Number of intervals between readings of the counters in which operations are compared with the processor time;"""
OPERATIONS: Final = 1 << 18
"""... fewer if they would contain more operations than this,"""
INTERVALS_MIN: Final = 20
"""... but no fewer than these, without which nothing is compared."""
CROSSING: Final = 64
"""Number of operations before each interval that are included, because they may last into it."""
PAGE_BYTES: Final = 4096
READS_MAX: Final = 0.001
"""Pages read per operation above which operations may wait for the medium, which belongs to their energy."""


def longest_work(
    operations: OperationTable,
    counters: Counters | None,
    activities: Mapping[str, Intervals],
    *,
    one_thread: bool,
) -> Waits:
    """Limits for the operations of a run, chosen so that their work agrees with the processor time.

    If at most 1 operation in 100 waits, the limit follows from the 99th percentile. If more do, such as LevelDB's
    writers that sleep, that percentile is itself a wait. If operations are off the processor for much of their time,
    and a lower one explains the processor time that the board counted far better, waits are frequent. An operation then
    works for at most WAKE_NS longer than the median.
    `one_thread`: the engine has one background thread.
    """
    few = sampled(operations)
    usual = Waits.of(few, RARE)
    lower = [Waits.of(few, fraction) for fraction in FREQUENT]
    if counters is None or not np.any(usual.longest_ns > APART * lower[-1].longest_ns):
        return usual
    edges_ns, interval, cpu_s = _counted(counters, operations)
    if interval.size < INTERVALS_MIN or not cpu_s.any():
        return usual
    some = _around(edges_ns, interval, operations)
    seconds = background_s(edges_ns, activities, one_thread=one_thread)
    beside = [of_activity[interval] for name, of_activity in seconds.items() if name != SYNC]

    def compared(waits: Waits) -> tuple[float, float]:
        """Processor time of a busy second [s], and the sum of squares of what remains unexplained."""
        busy_s = operations_in(edges_ns, some, waits)[1].sum(axis=1)[interval]
        columns = np.stack([busy_s, *beside], axis=1)
        x = non_negative(columns.T @ columns, columns.T @ cpu_s, np.zeros(columns.shape[1], np.bool_))
        return float(x[0]), float(np.sum((cpu_s - columns @ x) ** 2))

    of_busy_s, left = compared(usual)
    if of_busy_s >= ON_PROCESSOR or BETTER * min(compared(waits)[1] for waits in lower) >= left:
        return usual
    median_ns = Waits.of(few, 0.5).longest_ns / WORKING
    return Waits((median_ns + WAKE_NS).astype(np.int64), frequent=True)


def long_ones(operations: OperationTable, waits: Waits) -> OperationTable:
    """The operations that may have waited for most of their time.

    They take longer than 99 of 100 of their kind, than WORKING times its median and WAKE_NS, or than `waits`.
    """
    few = sampled(operations)
    rare_ns = Waits.of(few, RARE).longest_ns / WORKING
    longest_ns = np.minimum(np.minimum(rare_ns, Waits.of(few, 0.5).longest_ns + WAKE_NS), waits.longest_ns)
    found = [np.zeros(0, np.intp)]
    for number, part in enumerate(operations.parts()):
        found.append(np.flatnonzero(part.duration_ns > longest_ns.take(part.kind)) + number * PART_ROWS)
    return operations.select(np.concatenate(found))


def _counted(counters: Counters, operations: OperationTable) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Edges of intervals spread over the run, index of each interval's first edge, and its processor time [s].

    Shapes (e,), (i,), (i,); all are empty if the run reads from the medium.
    """
    inside = (counters.board_ns >= operations.board_ns[0]) & (counters.board_ns <= operations.board_ns[-1])
    at = np.flatnonzero(inside)
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    if at.size < 2:
        return nothing
    read_bytes = counters.read_bytes[at[-1]] - counters.read_bytes[at[0]]
    if read_bytes > READS_MAX * len(operations) * PAGE_BYTES:
        return nothing
    whole = at.size - 1
    most = min(INTERVALS, max(OPERATIONS * whole // len(operations), INTERVALS_MIN), whole)
    start = at[np.unique(np.linspace(0, whole - 1, most).astype(np.int64))]
    edge = np.unique(np.concatenate([start, start + 1]))
    grown_s = counters.cpu_s[start + 1] - counters.cpu_s[start]
    return counters.board_ns[edge], np.searchsorted(edge, start), grown_s


def _around(edges_ns: Int64Array, interval: Int64Array, operations: OperationTable) -> OperationTable:
    """Operations that start in the intervals, and CROSSING before each of these."""
    begin, end = (np.searchsorted(operations.board_ns, edges_ns[interval + later]) for later in (0, 1))
    rows = [np.arange(low, high) for low, high in zip(np.maximum(begin - CROSSING, 0), end, strict=True)]
    return operations.select(np.unique(np.concatenate(rows)))
