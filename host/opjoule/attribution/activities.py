"""Seconds of the engine's own work in each window, by activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opjoule.attribution.overlap import overlap_s
from opjoule.energy.operations.operation_table import ACTIVITIES
from opjoule.energy.trace.power_trace import Float64Array, Int64Array

SYNC: Final = "sync"
"""An engine or the system waits for the medium to store what was written."""
_NEVER: Final = np.iinfo(np.int64).min
_ALWAYS: Final = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Intervals:
    """Intervals of one activity; they may overlap."""

    start_ns: Int64Array
    """shape (n,), sorted"""
    end_ns: Int64Array

    @classmethod
    def of(cls, start_ns: Int64Array, end_ns: Int64Array) -> Intervals:
        """Intervals from starts and ends, in any order."""
        order = np.argsort(start_ns, kind="stable")
        return cls(start_ns[order], end_ns[order])

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def merged(self) -> Intervals:
        """Union of the intervals; no two of the result overlap."""
        ends_ns = np.maximum.accumulate(self.end_ns)
        first = np.append(True, self.start_ns[1:] > ends_ns[:-1])[: self.start_ns.size]
        return Intervals(self.start_ns[first], np.maximum.reduceat(ends_ns, np.flatnonzero(first)))

    @classmethod
    def joined(cls, runs: Sequence[Mapping[str, Intervals]]) -> dict[str, Intervals]:
        """Intervals of several runs, by activity."""
        names = dict.fromkeys(name for run in runs for name in run)
        by_name = {name: [run[name] for run in runs if name in run] for name in names}
        return {
            name: cls.of(
                np.concatenate([intervals.start_ns for intervals in parts]),
                np.concatenate([intervals.end_ns for intervals in parts]),
            )
            for name, parts in by_name.items()
        }


def background(events: pa.Table, start_ns: int = _NEVER, end_ns: int = _ALWAYS) -> dict[str, Intervals]:
    """The engine's work by activity, from events.parquet, as far as it lies in a span of time.

    Activities without any are left out. Work that began before the span, such as a compaction that opening the
    database has started, counts from the span's start on.
    """
    by_activity = {}
    for name in ACTIVITIES:
        rows = events.filter(pc.and_(pc.equal(events["event"], name), pc.is_valid(events["end_board_ns"])))
        if len(rows):
            starts, ends = (rows[side].to_numpy().astype(np.int64) for side in ("board_ns", "end_board_ns"))
            inside = (starts < end_ns) & (ends > start_ns)
            if inside.any():
                by_activity[name] = Intervals.of(np.maximum(starts[inside], start_ns), ends[inside])
    return by_activity


def writing(activities: Mapping[str, Intervals]) -> dict[str, Intervals]:
    """Activities during which bytes may be written to the medium: the engine's writing work and its syncs."""
    engine = [intervals for name, intervals in activities.items() if name != SYNC]
    beside = {SYNC: activities[SYNC]} if SYNC in activities else {}
    if engine:
        ends_ns = np.concatenate([intervals.end_ns for intervals in engine])
        beside["work"] = Intervals.of(np.concatenate([intervals.start_ns for intervals in engine]), ends_ns)
    return beside


def changes_ns(activities: Mapping[str, Intervals], shortest_ns: int, most: int) -> Int64Array:
    """Starts and ends of the longest `most` intervals of those long enough for a window of their own."""
    if not activities:
        return np.zeros(0, np.int64)
    start_ns = np.concatenate([intervals.start_ns for intervals in activities.values()])
    end_ns = np.concatenate([intervals.end_ns for intervals in activities.values()])
    length_ns = end_ns - start_ns
    chosen = np.flatnonzero(length_ns >= shortest_ns)
    if chosen.size > most:
        chosen = chosen[np.argpartition(length_ns[chosen], -most)[-most:]]
    return np.concatenate([start_ns[chosen], end_ns[chosen]])


def background_s(
    edge_board_ns: Int64Array, activities: Mapping[str, Intervals], *, one_thread: bool
) -> dict[str, Float64Array]:
    """Seconds of each activity in each window, shape (n,).

    A flush, compaction or checkpoint waits for the syncs inside it: those seconds count for the sync. Concurrent syncs
    count once, because all of them wait for the same medium. In an engine with one background thread, the seconds of a
    flush inside a compaction count for the flush.
    """
    seconds = {
        name: overlap_s(edge_board_ns, intervals.start_ns, intervals.end_ns) for name, intervals in activities.items()
    }
    if SYNC in activities:
        waited = activities[SYNC].merged
        seconds[SYNC] = overlap_s(edge_board_ns, waited.start_ns, waited.end_ns)
    outer = [name for name in ("flush", "checkpoint", "compaction") if name in activities]
    carved = [(SYNC, outer)] + ([("flush", ["compaction"])] if one_thread else [])
    for inner, outers in carved:
        for name, inside in _inside(activities, inner, [name for name in outers if name in activities]).items():
            seconds[name] = seconds[name] - overlap_s(edge_board_ns, inside.start_ns, inside.end_ns)
    return {name: np.maximum(seconds_of, 0.0) for name, seconds_of in seconds.items()}


def _inside(activities: Mapping[str, Intervals], inner: str, outers: Sequence[str]) -> dict[str, Intervals]:
    """Inner intervals by the outer activity that encloses them; if several do, by the one that began last."""
    if inner not in activities or not outers:
        return {}
    inner_intervals = activities[inner]
    begun_ns = np.stack([_enclosing_start(inner_intervals, activities[name]) for name in outers])
    chosen = np.where(begun_ns.max(axis=0) == _NEVER, -1, begun_ns.argmax(axis=0))
    return {
        name: Intervals(inner_intervals.start_ns[chosen == at], inner_intervals.end_ns[chosen == at])
        for at, name in enumerate(outers)
    }


def _enclosing_start(inner: Intervals, outer: Intervals) -> Int64Array:
    """Start of the last outer interval that encloses each inner one completely; _NEVER if none does."""
    begun = np.searchsorted(outer.start_ns, inner.start_ns, "right") - 1
    at = np.maximum(begun, 0)
    holds = (begun >= 0) & (inner.end_ns <= outer.end_ns[at])
    return np.where(holds, outer.start_ns[at], _NEVER)
