"""One run cut into windows: the energy of each, and what went on in it but for the medium."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.attribution.activities import SYNC, background_s, changes_ns
from opjoule.attribution.columns import PartColumns
from opjoule.attribution.delay import delay_ns
from opjoule.attribution.overlap import SeenClock, Waits, operations_in, operations_seen_in
from opjoule.attribution.storage import SensedMedium
from opjoule.attribution.window_groups import groups, stretch_edges_ns
from opjoule.attribution.windows import Windows
from opjoule.attribution.work import Work
from opjoule.trace.power_trace import Float64Array, Int64Array

CHANGE_PERIODS: Final = 2
"""Sample periods that background work lasts at least to have windows of its own."""
CHANGES_MAX: Final = 1 << 14
SEEN_MIN: Final = 0.25
"""Part of the time that a meter sees at least for stamps to say which part of an operation that is."""


@dataclass(frozen=True)
class RunWindows:
    """The windows of one run and its settle, n of them."""

    windows: Windows
    above_j: Float64Array
    """Energy of each above idle, without what a sensor says that the medium drew of the board's supply; 0 where it is
    not known, shape (n,)."""
    columns: PartColumns
    """Without the medium's."""
    edge_ns: Int64Array
    """Edges of the windows by the board's clock, moved by the power's delay, shape (n + 1,)."""
    seen: PartColumns | None
    """Each operation counted as the meter saw of it; None where it sees all or less than SEEN_MIN."""
    medium: SensedMedium | None
    """None without a sensor in the medium's supply."""

    @classmethod
    def of(cls, work: Work, length_ns: int) -> RunWindows:
        """Windows of at most one length."""
        stretch_ns = stretch_edges_ns(
            work.start_board_ns,
            work.end_board_ns,
            length_ns,
            work.counters.board_ns if work.counters else np.zeros(0, np.int64),
        )
        changes = changes_ns(work.activities, CHANGE_PERIODS * work.cells.period_ns, CHANGES_MAX)
        windows = Windows.cut(
            work.cells,
            work.board_to_meter,
            work.start_board_ns,
            work.end_board_ns,
            length_ns,
            np.concatenate([changes, stretch_ns, [work.work_end_board_ns]]),
        )
        idle_j = work.idle.power.value * windows.duration_s
        board_j = windows.energy_j - idle_j
        if work.storage and work.storage.of_board:
            board_j = board_j - work.storage.above_j(windows.edge_board_ns)
        above_j = np.where(windows.sound, board_j, 0.0)
        waits = Waits.of(work.operations)
        map_u_ns = work.board_to_meter.u_ns(work.start_board_ns)
        late_ns = delay_ns(windows.edge_board_ns, above_j, work.operations, waits, map_u_ns)
        edge_ns = windows.edge_board_ns - late_ns
        syncs = work.activities.get(SYNC)
        medium = (
            SensedMedium.of(work.storage, windows.edge_board_ns, late_ns, work.counters, syncs)
            if work.storage
            else None
        )
        count, busy_s = operations_in(edge_ns, work.operations, waits)
        seconds = background_s(edge_ns, work.activities, one_thread=work.one_background_thread)
        middle_ns = (windows.edge_board_ns[1:] + windows.edge_board_ns[:-1]) // 2
        group = groups(
            seconds,
            windows.duration_s,
            windows.edge_board_ns[:-1] >= work.work_end_board_ns,
            np.searchsorted(stretch_ns, middle_ns),
        )
        kinds = {work.operations.kinds[at]: at for at in np.flatnonzero(count.any(axis=0)).tolist()}
        activities = {name: each for name, each in seconds.items() if each.any()}
        columns = PartColumns.of(kinds, count, busy_s, activities, group)
        if not SEEN_MIN <= work.seen_fraction < 1.0:
            return cls(windows, above_j, columns, edge_ns, None, medium)
        bound_ns = work.board_to_meter.inverse().to_target(work.cells.bounds_ns) - late_ns
        clock = SeenClock.of(bound_ns, work.seen_fraction)
        seen = operations_seen_in(edge_ns, work.operations, waits, clock)
        own = PartColumns.of(kinds, *seen, activities, group)
        return cls(windows, above_j, columns, edge_ns, own, medium)
