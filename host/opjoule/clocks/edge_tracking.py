"""Finds stretches of four edges that occur in two recordings of one line, and extends one of them to all their edges.

The relative positions of the two inner edges between the outer ones do not depend on a clock's rate, and intervals are
pseudo-random. Two stretches that agree in both positions, within the delay of an edge, are seldom different edges.

A wandering clock keeps its rate from one edge to the next: the positions of the next edges are predicted from the last
half minute. After a gap, the tolerance grows with its length, and the shift that fits most of the edges is chosen.
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


BLOCK: Final = 8
"""Number of edges that are predicted together."""
PAUSE_NS: Final = 10_000_000_000
ALONE_NS: Final = 1_000_000
"""Tolerance above which an edge needs another edge that agrees."""
MEMORY: Final = 32
"""Number of edges from which the local rate is taken."""
MEMORY_NS: Final = 60_000_000_000
"""Greatest age of these edges: over a long pause, a wandering clock does not run linearly."""
FEWEST: Final = 4
"""Least number of these edges, whatever their age."""
RATE_SLACK: Final = 1e-6
DRIFT_PER_S: Final = 2e-6
"""Greatest change of the rate per second: twice that of 30 ppm of warm-up in its first minutes."""
SHIFT_MAX_NS: Final = 100_000_000
"""Greatest distance of an edge from its prediction."""
SLEW_MAX: Final = 1.1e-3
"""Greatest sudden change of a clock's rate by slewing: 500 ppm by adjtimex, 1000 by some daemons."""
SLEW_MIN: Final = 100e-6
"""Smaller sudden changes are tracked without a search."""
SLEW_SEEN_S: Final = 20.0
"""Time after the last pair within which a change of rate is searched for: later, chance matches are too frequent."""
TRUSTED: Final = 12
"""Number of pairs from which a track without further matches is searched for nearby; a shorter one was chance."""
LOST_MAX: Final = 24
"""Number of edges at its start of which a track must match a quarter; otherwise it was chance."""


class EdgeTrack(NamedTuple):
    """Matched edges, in order of time."""

    source: IndexArray
    target: IndexArray
    possible: int
    """Edges of the shorter list inside the interval that both lists cover."""
    changes: int
    """Number of sudden changes of one clock's rate, as in a clock that is slewed."""


class _Line(NamedTuple):
    """Prediction of a source edge on the target clock, from the edges before it."""

    source_ns: int
    target_ns: int
    rate: float
    u_rate: float
    """Bound of the rate's error."""

    def predicted_ns(self, source_ns: Int64Array) -> Int64Array:
        distance = source_ns - self.source_ns
        return np.asarray(self.target_ns + distance + np.rint(distance * (self.rate - 1.0)), np.int64)

    def slack_ns(self, source_ns: Int64Array) -> Float64Array:
        distance = np.abs(source_ns - self.source_ns).astype(np.float64)
        slack = TOLERANCE_NS + self.u_rate * distance + 0.5e-9 * DRIFT_PER_S * distance**2
        return np.asarray(np.minimum(slack, SHIFT_MAX_NS), np.float64)


def track(source: Edges, target: Edges, start: Likeness) -> EdgeTrack | None:
    """All edges that match if those of `start` do; None if too few edges around it fit."""
    # Outward from the first edge of the stretch: edges skipped inside it are matched on the way.
    length_ns = float(source.ns[start.source[3]] - source.ns[start.source[0]])
    guess = _Guess(start.rate, 2 * TOLERANCE_NS / max(length_ns, 1.0) + RATE_SLACK)
    first = start.source[0], start.target[0]
    later = _Way(source, target, [first], guess, inverted=start.inverted)
    if not later.follow():
        return None
    mirrored = _unmirrored(source, target, [first])
    earlier = _Way(_mirrored(source), _mirrored(target), mirrored, guess, inverted=start.inverted)
    if not earlier.follow():
        return None
    pairs = sorted({*later.pairs, *_unmirrored(source, target, earlier.pairs)})
    changes = later.changes + earlier.changes
    if changes:
        pairs = _with_the_way_back(source, target, pairs, inverted=start.inverted)
    rows, columns = (np.array(side, np.intp) for side in zip(*pairs, strict=True))
    sources, targets = later.covered + earlier.covered + 1, later.passed + earlier.passed + 1
    return EdgeTrack(rows, columns, min(sources, targets), changes)


class _Guess(NamedTuple):
    """The rate before there are enough pairs to determine it."""

    rate: float
    u_rate: float
    """Bound of the rate's error."""


def _with_the_way_back(
    source: Edges, target: Edges, pairs: list[tuple[int, int]], *, inverted: bool
) -> list[tuple[int, int]]:
    """Pairs from tracking in both directions: a sudden change of rate loses the edges after it in either direction."""
    guess = _Guess(1.0, 1.0)  # not used: there are enough pairs
    out = _Way(source, target, pairs[:FEWEST], guess, inverted=inverted)
    last = _unmirrored(source, target, pairs[-FEWEST:])[::-1]
    home = _Way(_mirrored(source), _mirrored(target), last, guess, inverted=inverted)
    out.follow()
    home.follow()
    both = dict([*_unmirrored(source, target, home.pairs), *out.pairs, *pairs])
    joined: list[tuple[int, int]] = []
    for row, column in sorted(both.items()):
        if not joined or column > joined[-1][1]:
            joined.append((row, column))
    return joined


def _unmirrored(source: Edges, target: Edges, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(source.ns.size - 1 - row, target.ns.size - 1 - column) for row, column in pairs]


def _mirrored(edges: Edges) -> Edges:
    """The edges in reversed time."""
    return Edges(-edges.ns[::-1], edges.level[::-1], edges.index[::-1])


class _Way:
    """Edges matched from a start, forward in time."""

    def __init__(
        self, source: Edges, target: Edges, pairs: list[tuple[int, int]], guess: _Guess, *, inverted: bool
    ) -> None:
        """Starts with pairs in order of time, and continues after the last of them."""
        self._source, self._target, self._guess = source, target, guess
        self._wanted = source.level ^ 1 if inverted else source.level
        self._inverted = inverted
        self._first_target = pairs[-1][1]
        self.pairs = list(pairs)
        self.changes = 0
        """Number of sudden changes of the rate."""
        self._oldest = 0
        """The first pair since the last sudden change of the rate."""
        self.covered = 0
        """Edges of the source after the start that are inside the target's list."""

    @property
    def passed(self) -> int:
        """Edges of the target after the start, up to the last possible partner of a covered edge of the source."""
        return self._last_target - self._first_target

    def follow(self) -> bool:
        """Matches block after block to the end of either list; False if the start was a chance match."""
        at, matched = self.pairs[-1][0] + 1, 0
        self._last_target = self.pairs[-1][1]
        while at < self._source.ns.size:
            line = self._line()
            block = self._inside(self._block(at), line)
            if block.size == 0:
                break
            fitting = self._vote(block, line)
            if 2 * len(fitting) < block.size and len(self.pairs) >= TRUSTED:
                again = self._found_again(at, line)
                if again:
                    fitting, self._oldest = again, len(self.pairs)
                    self.changes += 1
            next_at = max(int(block[-1]), fitting[-1][0] if fitting else 0) + 1
            self.covered += next_at - at
            at, matched = next_at, matched + len(fitting)
            self.pairs += fitting
            if matched < self.covered / 4 and LOST_MAX <= self.covered < 2 * LOST_MAX:
                return False
        return True

    def _block(self, at: int) -> IndexArray:
        """The next edges, up to a pause; the edges after a pause are placed together."""
        block = np.arange(at, min(at + BLOCK, self._source.ns.size))
        pauses = np.flatnonzero(np.diff(self._source.ns[block]) > PAUSE_NS)
        return block[: int(pauses[0]) + 1] if pauses.size else block

    def _line(self) -> _Line:
        """Line through the last pairs, without outliers."""
        rows, columns = np.array(self.pairs[max(self._oldest, len(self.pairs) - MEMORY) :], np.intp).T
        source = self._source.ns[rows]
        if rows.size < FEWEST:
            return _Line(int(source[-1]), int(self._target.ns[columns[-1]]), *self._guess)
        recent = max(int(np.sum(source >= source[-1] - MEMORY_NS)), min(FEWEST, rows.size))
        source, target = source[-recent:], self._target.ns[columns[-recent:]]
        time = (source - source[-1]).astype(np.float64)
        beyond = ((target - target[-1]) - (source - source[-1])).astype(np.float64)
        slope, height = _straight(time, beyond)
        off = np.abs(beyond - height - slope * time)
        near = off <= max(TOLERANCE_NS / 2, 3 * float(np.median(off)))
        if near.sum() >= 2 and not near.all():
            slope, height = _straight(time[near], beyond[near])
        # The last few pairs may be on both sides of a pause in which the rate changed.
        older_s = max(-float(time[0]) - MEMORY_NS, 0.0) * 1e-9
        u_rate = 2 * TOLERANCE_NS / max(-float(time[0]), 1.0) + RATE_SLACK + 0.5 * DRIFT_PER_S * older_s
        return _Line(int(source[-1]), int(target[-1]) + round(height), 1.0 + slope, u_rate)

    def _inside(self, block: IndexArray, line: _Line) -> IndexArray:
        """The next edges that may be within the target's list."""
        source_ns = self._source.ns[block]
        predicted_ns = line.predicted_ns(source_ns)
        inside: IndexArray = block[predicted_ns <= self._target.ns[-1] + line.slack_ns(source_ns)]
        if inside.size:
            end_ns = min(int(predicted_ns[inside.size - 1]) + TOLERANCE_NS, int(self._target.ns[-1]))
            last = int(np.searchsorted(self._target.ns, end_ns, side="right")) - 1
            self._last_target = max(self._last_target, last)
        return inside

    def _vote(self, block: IndexArray, line: _Line) -> list[tuple[int, int]]:
        """The pairs with the shift that most edges of the block agree on."""
        source_ns, wanted = self._source.ns[block], self._wanted[block]
        predicted_ns, slack_ns = line.predicted_ns(source_ns), line.slack_ns(source_ns)
        low = np.searchsorted(self._target.ns, predicted_ns - slack_ns.astype(np.int64))
        high = np.searchsorted(self._target.ns, predicted_ns + slack_ns.astype(np.int64), side="right")
        rows = np.repeat(np.arange(block.size), high - low)
        columns = np.concatenate([np.arange(*ends) for ends in zip(low, high, strict=True)]).astype(np.intp)
        level = self._target.level[columns] == wanted[rows]
        # An edge belongs to one pair: matched edges are not available.
        rows, columns = rows[level], columns[level]
        new = columns > self.pairs[-1][1]
        rows, columns = rows[new], columns[new]
        if rows.size == 0:
            return []
        shift = (self._target.ns[columns] - predicted_ns[rows]).astype(np.float64)
        apart = np.abs(source_ns[rows][:, None] - source_ns[rows][None, :])
        alike = np.abs(shift[:, None] - shift[None, :]) <= TOLERANCE_NS + line.u_rate * apart
        # For each pair, the number of edges of the block that have a pair with about the same shift.
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        agreeing = np.logical_or.reduceat(alike, starts, axis=1).sum(axis=1)
        best = alike[int(np.argmax(agreeing))]
        if np.unique(rows[best]).size == 1 and slack_ns[rows[best][0]] > ALONE_NS:
            return []
        middle = float(np.median(shift[best]))
        return _one_to_one(block[rows[best]], columns[best], np.abs(shift[best] - middle))

    def _found_again(self, at: int, line: _Line) -> list[tuple[int, int]]:
        """The next matching stretch, if the clock has suddenly changed its rate."""
        end = min(at + 2 * BLOCK, self._source.ns.size)
        source_ns = self._source.ns[[at, end - 1]]
        room_ns = line.slack_ns(source_ns) + SLEW_MAX * (source_ns - line.source_ns)
        predicted_ns = line.predicted_ns(source_ns)
        first = int(np.searchsorted(self._target.ns, predicted_ns[0] - int(room_ns[0])))
        first = max(first, self.pairs[-1][1] + 1)
        last = int(np.searchsorted(self._target.ns, predicted_ns[1] + int(room_ns[1]), side="right"))
        silent_s = float(source_ns[0] - line.source_ns) * 1e-9
        if last - first < 4 or end - at < 4 or silent_s > SLEW_SEEN_S:
            return []
        index = StretchIndex(self._target, first, last)
        for like in index.like(self._source, np.arange(at, end - 3), end):
            ends = [like.source[0], like.source[3]], [like.target[0], like.target[3]]
            source_ns = self._source.ns[ends[0]]
            shift_ns = np.abs(self._target.ns[ends[1]] - line.predicted_ns(source_ns)).astype(np.float64)
            slack_ns = line.slack_ns(source_ns)
            near = shift_ns[0] <= slack_ns[0] + SLEW_MAX * float(source_ns[0] - line.source_ns)
            # The vote has covered everything that the line can explain.
            changed = shift_ns[1] > slack_ns[1] and SLEW_MIN <= abs(like.rate - line.rate) <= 2 * SLEW_MAX
            if near and changed and like.inverted == self._inverted:
                return list(zip(like.source, like.target, strict=True))
        return []


def _straight(time: Float64Array, value: Float64Array) -> tuple[float, float]:
    """Slope, and value at time 0, by least squares."""
    centred = time - time.mean()
    slope = float(centred @ value) / max(float(centred @ centred), 1.0)
    return slope, float(value.mean()) - slope * float(time.mean())


def _one_to_one(rows: IndexArray, columns: IndexArray, off_ns: Float64Array) -> list[tuple[int, int]]:
    """Assigns each edge to at most one pair, the nearest first, in order on both sides."""
    column_of: dict[int, int] = {}
    for at in np.argsort(off_ns, kind="stable").tolist():
        row, column = int(rows[at]), int(columns[at])
        if row not in column_of and column not in column_of.values():
            column_of[row] = column
    pairs = sorted(column_of.items())
    return [pair for number, pair in enumerate(pairs) if number == 0 or pair[1] > pairs[number - 1][1]]
