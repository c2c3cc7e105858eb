"""Random powers of the parts of a database's work, and pieces of exactly known energy. SIMULATED.

No power of a kind of operation or an activity is proportional to processor time, and the estimate does not use these
powers. The simulated rig and the trials of host/validation use them.

A piece's `until_j` takes moments [s], shape (m,), on the clock of the piece's times, and returns the energy [J] drawn
up to each of them, shape (m,).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np

from opjoule.attribution.activities import Intervals
from opjoule.energy.trace.power_trace import Float64Array

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
