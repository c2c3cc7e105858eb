"""The twin's power model applied to recorded activity, window by window, without a simulator.

A simulated measurement uses the same `PowerModel` and `MediumCourse`, so that the fit and the simulation agree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from opjoule.attribution.overlap import overlap_s
from opjoule.bench.simulation.fitting.recorded import ActivityWindows, Recorded
from opjoule.bench.simulation.medium_work import MediumCourse, MediumMode, MediumStretch
from opjoule.bench.simulation.power_model import BoardModel, MediumModel
from opjoule.energy.trace.power_trace import Float64Array

LATE: Final = 0.1
"""Part of a window by which the counters may run ahead of the work; the next window compensates for it."""
BUSY: Final = (MediumMode.WRITING, MediumMode.READING, MediumMode.FLUSHING)


@dataclass(frozen=True)
class Replayed:
    """Mean power of each window by component [W]; every array has shape (n,)."""

    rest_w: Float64Array
    processor_w: Float64Array
    medium_w: Float64Array
    """Power of a medium that reads, writes or flushes, above its idle."""
    tail_w: Float64Array

    @property
    def total_w(self) -> Float64Array:
        """Sum of the components."""
        return self.rest_w + self.processor_w + self.medium_w + self.tail_w


def replayed(board: BoardModel, medium: MediumModel, one: Recorded) -> Replayed:
    """The model's power in each window of a record."""
    busy, tail = medium_shares(medium, medium_work(medium, one), one.windows)
    rest_w = board.power_w(0.0)
    above_w = np.array([board.power_w(float(busy)) for busy in one.windows.busy_cores]) - rest_w
    idle_w = np.full(len(one.windows), rest_w + medium.idle_w)
    return Replayed(idle_w, above_w, medium.active_w * busy, medium.tail_w * tail)


def core_columns(busy_cores: Float64Array, cores: int) -> Float64Array:
    """Busy share of each core, one core after the other, shape (n, cores), as in the board's model."""
    return np.asarray(np.clip(busy_cores[:, None] - np.arange(cores), 0.0, 1.0), np.float64)


def medium_work(medium: MediumModel, one: Recorded) -> list[MediumStretch]:
    """Busy stretches of the medium, from the board's counters and the syncs that waited for it; in order of time.

    The bytes of a window take their time at the medium's rates, at most the whole window: they were done by its end.
    The stretch is at the window's start, or at its end if the work begins there and continues in the next window. A
    sync ends with the flush of the medium's cache.
    """
    stretches = [MediumStretch(*span, MediumMode.WRITING) for span in _moved(medium, one.windows)]
    flush_ns = round(medium.flush_s * 1e9)
    for start_ns, end_ns in zip(one.syncs.start_ns.tolist(), one.syncs.end_ns.tolist(), strict=True):
        if end_ns > start_ns and flush_ns:
            stretches.append(MediumStretch(max(end_ns - flush_ns, start_ns), end_ns, MediumMode.FLUSHING))
    kept: list[MediumStretch] = []
    for stretch in sorted(stretches, key=lambda stretch: stretch.start_ns):
        start_ns = max(stretch.start_ns, kept[-1].end_ns) if kept else stretch.start_ns
        if stretch.end_ns > start_ns:
            kept.append(MediumStretch(start_ns, stretch.end_ns, stretch.mode))
    return kept


def _moved(medium: MediumModel, windows: ActivityWindows) -> list[tuple[int, int]]:
    """Start and end [board_ns] of the stretches in which bytes are transferred."""
    wanted_s = windows.written_bytes / medium.write_bytes_per_s + windows.read_bytes / medium.read_bytes_per_s
    spans: list[tuple[int, int]] = []
    works = np.concatenate([[False], wanted_s > 0, [False]])
    late_ns = 0
    for at in np.flatnonzero(wanted_s > 0).tolist():
        start_ns, end_ns = int(windows.start_ns[at]), int(windows.end_ns[at])
        wanted_ns = round(float(wanted_s[at]) * 1e9) + (late_ns if works[at] else 0)
        lasts_ns = min(wanted_ns, end_ns - start_ns)
        late_ns = min(wanted_ns - lasts_ns, round(LATE * (end_ns - start_ns)))
        goes_on = works[at + 2] and not works[at]
        spans.append((end_ns - lasts_ns, end_ns) if goes_on else (start_ns, start_ns + lasts_ns))
    return spans


def medium_shares(
    medium: MediumModel, work: Sequence[MediumStretch], windows: ActivityWindows
) -> tuple[Float64Array, Float64Array]:
    """Share of each window in which the medium is busy, and share in its tail, shape (n,) each."""
    whole = MediumCourse(medium.tail_s).between(int(windows.start_ns[0]), int(windows.end_ns[-1]), work)
    return _share(whole, BUSY, windows), _share(whole, (MediumMode.TAIL,), windows)


def sync_share(one: Recorded) -> Float64Array:
    """Share of each window in which a sync waited, shape (n,); above 1 if several did."""
    if not len(one.syncs):
        return np.zeros(len(one.windows))
    edge_ns = np.sort(np.concatenate([one.windows.start_ns, one.windows.end_ns]))
    return np.asarray(overlap_s(edge_ns, one.syncs.start_ns, one.syncs.end_ns)[::2] / one.windows.span_s)


def _share(whole: Sequence[MediumStretch], modes: tuple[MediumMode, ...], windows: ActivityWindows) -> Float64Array:
    chosen = [stretch for stretch in whole if stretch.mode in modes]
    if not chosen:
        return np.zeros(len(windows))
    edge_ns = np.sort(np.concatenate([windows.start_ns, windows.end_ns]))
    start_ns, end_ns = np.array([[stretch.start_ns, stretch.end_ns] for stretch in chosen], np.int64).T
    inside_s = overlap_s(edge_ns, np.ascontiguousarray(start_ns), np.ascontiguousarray(end_ns))
    # windows do not overlap: between the sorted edges, every other stretch is a window
    return np.asarray(inside_s[::2] / windows.span_s, np.float64)
