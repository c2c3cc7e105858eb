"""Parts of the simulated board's work: powers drawn at random, pieces of known energy, and the exact energy over time.

No power of a kind of operation or an activity is proportional to processor time, and the estimate does not use these
powers. The simulated rig and the trials of host/validation use them. SIMULATED.

A piece's `until_j` takes moments [s], shape (m,), on the clock of the piece's times, and returns the energy [J] drawn
up to each of them, shape (m,).
"""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Self

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.energy.operations.operation_table import ACTIVITIES, LOADER_KINDS
from opjoule.energy.trace.power_trace import Float64Array

COURSE: Final = "simulator-course.csv"
"""File of the record: true energy over time."""
PARTS: Final = "simulator-parts.csv"
"""File of the record: true energy over time by kind of operation and by activity."""
WRITE_BACK: Final = "write_back"
TAIL: Final = "tail"
READING: Final = "reading"
"""Part: the medium while it is being read."""
OTHER: Final = "other"
"""Part: the processor while no operation and no activity is known to be running."""
NAMES: Final = (*LOADER_KINDS, *ACTIVITIES, WRITE_BACK, TAIL, READING, OTHER)
ROW_NS: Final = 100_000_000
"""Time between two rows of the file; there is an additional row where work begins."""


class PartCourseWriter:
    """Sums each part's energy above idle and writes it at intervals, so that the file grows with time alone."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._file.write(",".join(("board_ns", *NAMES)) + "\n")
        self._drawn_j = np.zeros(len(NAMES))
        self._written_ns = self._end_ns = 0
        self._were_at_work = {"operations": False, "anything": False}

    def add(self, edge_ns: np.ndarray, energy_j: Mapping[str, Float64Array]) -> None:
        """Adds energies between edges, which continue those of the last call, by part; parts without any are absent."""
        if not self._written_ns:
            self._row(int(edge_ns[0]), {}, 0)
        for whose, were in self._were_at_work.items():
            names = energy_j if whose == "anything" else energy_j.keys() & set(LOADER_KINDS)
            drawn = [energy_j[name] for name in names]
            at_work = np.flatnonzero(sum(drawn, np.zeros(edge_ns.size - 1)))
            if at_work.size and not were:
                self._row(int(edge_ns[at_work[0]]), energy_j, int(at_work[0]))
            self._were_at_work[whose] = bool(at_work.size)
        for name, step_j in energy_j.items():
            self._drawn_j[NAMES.index(name)] += float(step_j.sum())
        self._end_ns = int(edge_ns[-1])
        if self._end_ns - self._written_ns >= ROW_NS:
            self._row(self._end_ns, {}, 0)

    def _row(self, board_ns: int, energy_j: Mapping[str, Float64Array], steps: int) -> None:
        """Writes the energies up to a moment, including the first steps of the next call."""
        if board_ns <= self._written_ns:
            return
        until_j = self._drawn_j.copy()
        for name, step_j in energy_j.items():
            until_j[NAMES.index(name)] += float(step_j[:steps].sum())
        cells = [f"{drawn_j:.9g}" for drawn_j in until_j.tolist()]
        self._file.write(",".join([str(board_ns), *cells]) + "\n")
        self._written_ns = board_ns

    def close(self) -> None:
        """Writes the energy since the last row, and closes the file."""
        self._row(self._end_ns, {}, 0)
        self._file.close()


@dataclass(frozen=True)
class PartCourse:
    """Cumulative energy of each part, or of the whole, at moments of the board's clock."""

    board_ns: np.ndarray
    """shape (n,), increasing"""
    energy_j: Mapping[str, Float64Array]
    """shape (n,) each"""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the simulator's file in a record: board_ns, then one column per part."""
        with path.open(encoding="utf-8") as file:
            header, *rows = list(csv.reader(file))
        cells = np.array(rows, np.float64)
        times = np.array([int(row[0]) for row in rows], np.int64)
        return cls(times, {name: cells[:, at] for at, name in enumerate(header) if at})

    def between(self, start_ns: int, end_ns: int) -> dict[str, float]:
        """Energy [J] of each part between two times."""
        moments_s = np.array([start_ns - self.board_ns[0], end_ns - self.board_ns[0]]) * 1e-9
        rows_s = (self.board_ns - self.board_ns[0]) * 1e-9
        return {
            name: float(np.diff(np.interp(moments_s, rows_s, drawn_j))[0]) for name, drawn_j in self.energy_j.items()
        }


OPERATION_SPREAD: Final = 0.5
"""Range of the energy of operations of a kind, relative to its mean."""
EVENT_SPREAD: Final = 0.1
"""Relative standard deviation of the power of events."""
INNER: Final[Mapping[str, tuple[str, ...]]] = {
    "sync": (),
    "flush": ("sync",),
    "checkpoint": ("sync",),
    "compaction": ("sync",),
}
"""Activity -> activities inside it during which its thread waits."""


@dataclass(frozen=True)
class PartPowers:
    """Powers above idle [W]."""

    kind_w: Mapping[str, float]
    """Power during an operation of a kind."""
    kind_fixed: Mapping[str, float]
    """Fixed energy of each operation, as a fraction of the kind's usual time at that power."""
    activity_w: Mapping[str, float]
    """Mean power of a usual event."""

    @classmethod
    def draw(
        cls, rng: np.random.Generator, kinds: Iterable[str], activities: Iterable[str], core_w: float = 1.0
    ) -> Self:
        """Powers around `core_w`, which a busy core adds to the board's idle power; two kinds may differ tenfold."""
        names = tuple(kinds)
        return cls(
            {name: core_w * float(rng.uniform(0.4, 1.5) * np.exp(rng.uniform(-0.5, 0.5))) for name in names},
            {name: float(rng.uniform(0.0, 0.4)) for name in names},
            {
                name: core_w * float(rng.uniform(0.05, 0.4) if name == "sync" else rng.uniform(0.3, 1.5))
                for name in activities
            },
        )

    def operations_j(self, rng: np.random.Generator, kind: str, works_s: Float64Array, usual_s: float) -> Float64Array:
        """Energy of each operation of a kind [J]; `works_s`: time that it worked, `usual_s`: its usual time."""
        differs = 1.0 + OPERATION_SPREAD * (rng.random(works_s.size, np.float32) - 0.5)
        usual_j = self.kind_w[kind] * (works_s + self.kind_fixed[kind] * usual_s)
        return np.asarray(usual_j * differs, np.float64)

    def event_w(self, rng: np.random.Generator, activity: str) -> float:
        """Mean power of one event."""
        return self.activity_w[activity] * float(rng.lognormal(0, EVENT_SPREAD))


def own_stretches(
    activities: Mapping[str, Intervals], name: str, start_ns: int, end_ns: int, *, one_thread: bool
) -> list[tuple[int, int]]:
    """Start and end of the stretches [ns] of one event in which it does its own work.

    Its thread waits during the activities directly inside it: syncs, or, in an engine with one background thread, a
    flush inside a compaction.
    """
    left, at = [], start_ns
    for begin, finish in _pauses(activities, name, start_ns, end_ns, one_thread=one_thread):
        if finish <= at:
            continue
        if begin > at:
            left.append((at, begin))
        at = finish
    return [*left, (at, end_ns)] if at < end_ns else left


def _pauses(
    activities: Mapping[str, Intervals], name: str, start_ns: int, end_ns: int, *, one_thread: bool
) -> list[tuple[int, int]]:
    inner = (*INNER[name], "flush") if name == "compaction" and one_thread else INNER[name]
    pauses = []
    for other in inner:
        for begin_ns, finish_ns in _inside(activities.get(other), start_ns, end_ns):
            closer = any(
                start_ns < first <= begin_ns and finish_ns <= last
                for outer in ("flush", "checkpoint", "compaction")
                if outer != other
                for first, last in _inside(activities.get(outer), start_ns, end_ns)
            )
            if not closer:
                pauses.append((begin_ns, finish_ns))
    return sorted(pauses)


def _inside(intervals: Intervals | None, start_ns: int, end_ns: int) -> list[tuple[int, int]]:
    if intervals is None:
        return []
    chosen = (intervals.start_ns >= start_ns) & (intervals.end_ns <= end_ns)
    return list(zip(intervals.start_ns[chosen].tolist(), intervals.end_ns[chosen].tolist(), strict=True))


@dataclass(frozen=True)
class Steady:
    """Consecutive pieces of constant power without overlap, with pauses between them."""

    start_s: Float64Array
    """shape (n,), sorted, as are the ends"""
    end_s: Float64Array
    energy_j: Float64Array
    """Energy of each piece, shape (n,)."""

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn up to each moment."""
        if not self.start_s.size:
            return np.zeros_like(time_s)
        knots_s, drawn_j = self._course
        return np.asarray(np.interp(time_s, knots_s, drawn_j), np.float64)

    @cached_property
    def _course(self) -> tuple[Float64Array, Float64Array]:
        """Starts and ends alternately, and the energy drawn up to each, shape (2 n,)."""
        knots_s = np.empty(2 * self.start_s.size)
        knots_s[0::2], knots_s[1::2] = self.start_s, self.end_s
        drawn_j = np.concatenate([[0.0], np.cumsum(self.energy_j)])
        at_knots_j = np.empty_like(knots_s)
        at_knots_j[0::2], at_knots_j[1::2] = drawn_j[:-1], drawn_j[1:]
        return knots_s, at_knots_j


@dataclass(frozen=True)
class Overlapping:
    """Pieces of constant power that may overlap."""

    start_s: Float64Array
    """shape (n,), in any order"""
    end_s: Float64Array
    power_w: Float64Array
    """Power of each piece, shape (n,)."""

    def until_j(self, time_s: Float64Array) -> Float64Array:
        """Energy drawn up to each moment."""
        return _since(time_s, self.start_s, self.power_w) - _since(time_s, self.end_s, self.power_w)


def _since(time_s: Float64Array, moment_s: Float64Array, power_w: Float64Array) -> Float64Array:
    order = np.argsort(moment_s)
    before = np.searchsorted(moment_s[order], time_s)
    power = np.concatenate([[0.0], np.cumsum(power_w[order])])[before]
    moment = np.concatenate([[0.0], np.cumsum((power_w * moment_s)[order])])[before]
    return np.asarray(power * time_s - moment)
