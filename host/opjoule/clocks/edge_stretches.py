"""Stretches of four edges, which identify the same edges in two recordings of one line.

The relative positions of the two inner edges between the outer ones do not depend on a clock's rate, and intervals are
pseudo-random. Two stretches that agree in both positions, within the delay of an edge, are seldom different edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.clocks.clock_map import Float64Array, Int64Array

IndexArray = npt.NDArray[np.intp]

TOLERANCE_NS: Final = 200_000
"""Greatest distance of two records of the same edge on one clock (a toggle in user space may be late)."""
RATE_MAX: Final = 9e-3
"""Greatest deviation of a clock's rate from 1: a ceramic resonator has 0.5 % as made, 0.3 % more with temperature and
age (Murata CERALOCK CSTCE-V53, catalogue P16E)."""
SKIP_MAX: Final = 3
"""Edges that a stretch may skip, at most two between neighbours, because the other clock missed or added them."""
LENGTH_MIN_NS: Final = 200_000_000
"""Shortest usable stretch: in shorter ones the delay of edges hides the difference."""


@dataclass(frozen=True)
class Edges:
    """Edges in order of time, without duplicates; arrays of shape (n,)."""

    ns: Int64Array
    level: npt.NDArray[np.int8]
    index: IndexArray
    """Indices in the original list."""

    @classmethod
    def of(cls, ns: Int64Array, level: npt.NDArray[np.int8]) -> Edges:
        """Sorts the edges by time and drops duplicates; `ns` and `level` have shape (n,)."""
        order = np.argsort(ns, kind="stable")
        ordered_ns, ordered_level = ns[order], level[order]
        new = np.ones(ns.size, np.bool_)
        new[1:] = (ordered_ns[1:] != ordered_ns[:-1]) | (ordered_level[1:] != ordered_level[:-1])
        return cls(ordered_ns[new], ordered_level[new], order[new])


Places = tuple[int, int, int, int]


class Likeness(NamedTuple):
    """Two stretches that may consist of the same edges."""

    source: Places
    target: Places
    rate: float
    inverted: bool


@dataclass(frozen=True)
class _Stretches:
    place: IndexArray
    """The four edges, shape (n, 4)."""
    length_ns: Float64Array
    inner: Float64Array
    """Positions of the second and third edge, as fractions of the length, shape (n, 2)."""
    turns: npt.NDArray[np.int8]
    """Three bits: whether each later edge has a different level from the first."""
    level: npt.NDArray[np.int8]
    """Level of the first edge."""

    @classmethod
    def of(cls, edges: Edges, first: int, last: int, begins: IndexArray | None = None) -> _Stretches:
        """All stretches of the edges first to last - 1, or only those that start at `begins`."""
        if begins is None:
            begins = np.arange(first, last)
        reach = [np.array(steps).cumsum() for steps in product(range(1, SKIP_MAX + 1), repeat=3)]
        place = np.concatenate([begins[:, None] + np.array([0, *ends]) for ends in reach])
        place = place[place[:, 3] < last]
        ns, level = edges.ns[place], edges.level[place]
        length_ns = (ns[:, 3] - ns[:, 0]).astype(np.float64)
        long = length_ns >= LENGTH_MIN_NS
        place, ns, level, length_ns = place[long], ns[long], level[long], length_ns[long]
        inner = (ns[:, 1:3] - ns[:, :1]) / length_ns[:, None]
        other = level[:, 1:] != level[:, :1]
        turns = (other[:, 0] + 2 * other[:, 1] + 4 * other[:, 2]).astype(np.int8)
        return cls(place, length_ns, inner, turns, level[:, 0])


class StretchIndex:
    """Index of the stretches of one recording, for finding those of another."""

    def __init__(self, edges: Edges, first: int = 0, last: int | None = None) -> None:
        """Indexes the stretches of the edges first to last - 1."""
        made = _Stretches.of(edges, first, edges.ns.size if last is None else last)
        order = np.argsort(made.inner[:, 0])
        self._stretches = _Stretches(*(column[order] for column in vars(made).values()))

    def like(self, source: Edges, begins: IndexArray, last: int) -> list[Likeness]:
        """Stretches that match those of the source starting at `begins` and ending before `last`; neighbours first."""
        mine, theirs = _Stretches.of(source, 0, last, begins), self._stretches
        slack = 2 * TOLERANCE_NS / np.maximum(mine.length_ns, 1.0)
        low = np.searchsorted(theirs.inner[:, 0], mine.inner[:, 0] - slack)
        high = np.searchsorted(theirs.inner[:, 0], mine.inner[:, 0] + slack)
        count = high - low
        row = np.repeat(np.arange(mine.length_ns.size), count)
        column = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
        rate = theirs.length_ns[column] / mine.length_ns[row]
        alike = (np.abs(rate - 1.0) <= RATE_MAX + slack[row]) & (theirs.turns[column] == mine.turns[row])
        alike &= np.abs(theirs.inner[column, 1] - mine.inner[row, 1]) <= slack[row]
        row, column, rate = row[alike], column[alike], rate[alike]
        inverted = mine.level[row] != theirs.level[column]
        columns = mine.place[row], theirs.place[column], rate, inverted
        rows = zip(*(values.tolist() for values in columns), strict=True)
        return [Likeness(tuple(ours), tuple(others), *rest) for ours, others, *rest in rows]
