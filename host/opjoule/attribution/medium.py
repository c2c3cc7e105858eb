"""What the storage medium did in each window: bytes that went to it, late, and the time it works on after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from opjoule.attribution.activities import Intervals
from opjoule.attribution.overlap import overlap_s
from opjoule.energy.step_integral import NS
from opjoule.trace.power_trace import Float64Array, Int64Array

RATES: Final = 8
"""Rates of draining that are tried, from all at once down to the mean over the whole stretch."""
TAILS: Final = 8
"""Lengths of the tail that are tried."""
FINE: Final = 4
"""Values that are tried on either side of the best, closer in each round."""
ROUNDS: Final = 4
OTHERS: Final = 4
"""Lags and tails as good as the best whose fits show how much rests on them."""
TAIL_BEGINS_S: Final = 0.5
"""Five samples of the board's counters: a shorter pause is no different from the writing itself."""
TAIL_MIN_S: Final = 0.8
TAIL_MAX_S: Final = 30.0
_STILL_BYTES_PER_S: Final = 1.0
WITH_WORK: Final = (0.5, 1.0)
"""Parts of the bytes between two samples that are tried, beside none, as gone during the engine's own work there. The
first, in the middle of what can be, is taken unless the windows say otherwise."""
WORTH: Final = 10.0
"""A lag, a tail or bytes at one of the bounds are believed where that lowers minus twice the logarithm of the
likelihood by this, or more."""


@dataclass(frozen=True)
class Counters:
    """Bytes that had gone to the medium by the board's counters."""

    board_ns: Int64Array
    """shape (m,), increasing"""
    written_bytes: Float64Array
    """Cumulative, shape (m,)."""

    def at(self, edge_board_ns: Int64Array) -> Float64Array:
        """Bytes written by each edge, as they were before the first sample and after the last one."""
        moment_ns, written = self._knots()
        after_ns = (edge_board_ns - self.board_ns[0]).astype(np.float64)
        return np.asarray(np.interp(after_ns, moment_ns, written), np.float64)

    def at_work(self, edge_board_ns: Int64Array, work: Intervals) -> Float64Array:
        """The same where all bytes between two samples went during the engine's own work there, if there was any."""
        moment_ns = _joined(edge_board_ns, self.board_ns)
        evenly = self.at(moment_ns)
        grown, work_s = np.diff(evenly), overlap_s(moment_ns, work.start_ns, work.end_ns)
        interval = np.searchsorted(self.board_ns, moment_ns[:-1], "right")
        of_interval_s = np.bincount(interval, work_s)[interval]
        of_work = np.bincount(interval, grown)[interval] * work_s / np.maximum(of_interval_s, 1e-12)
        by_moment = np.cumsum(np.where(of_interval_s > 0, of_work, grown))
        placed = evenly[0] + np.append(0.0, by_moment)
        return np.asarray(placed[np.searchsorted(moment_ns, edge_board_ns)], np.float64)

    def _knots(self) -> tuple[Float64Array, Float64Array]:
        """Moments between which bytes went evenly.

        Writing that begins or ends between two samples goes at the rate of the full sample beside it: it fills the part
        of the time next to that, and the rest is a pause.
        """
        sampled_ns = (self.board_ns - self.board_ns[0]).astype(np.float64)
        length_ns, grown = np.diff(sampled_ns), np.diff(self.written_bytes)
        rate = grown / np.maximum(length_ns, 1.0)
        before, after = np.concatenate([[0.0], rate[:-1]]), np.concatenate([rate[1:], [0.0]])
        ends, begins = (before > rate) & (after == 0.0), (after > rate) & (before == 0.0)
        lasts_ns = np.where(
            ends | begins, grown / np.maximum(np.where(ends, before, after), 1e-300), length_ns
        )
        starts_ns = sampled_ns[:-1] + np.where(begins, length_ns - lasts_ns, 0.0)
        knots_ns = np.stack([starts_ns, starts_ns + lasts_ns], axis=1).ravel()
        written = np.stack([self.written_bytes[:-1], self.written_bytes[1:]], axis=1).ravel()
        return knots_ns, written


@dataclass(frozen=True)
class MediumColumns:
    """What the medium did in each window, and the lag and tail behind that."""

    written_bytes: Float64Array
    """shape (n,)"""
    tail_s: Float64Array
    """Seconds after the last write in which the medium may still be at work, shape (n,); zeros: it has no tail."""
    drain_bytes_per_s: float | None
    """Rate at which the medium drains what it was sent; None: at once."""
    tail_length_s: float | None
    with_work: float = 0.0
    """Part of the bytes between two samples that went during the engine's own work there; the others went evenly."""


def drained(written_bytes: Float64Array, time_s: Float64Array, rate: float) -> Float64Array:
    """Bytes that have left a queue which drains at no more than a rate, by each time; all arrays of shape (n,).

    The queue is empty at the start. Source: Lindley's recursion, solved by the least value so far.
    """
    ahead = written_bytes - rate * time_s
    return np.minimum(np.minimum.accumulate(ahead) + rate * time_s, written_bytes)


def medium_columns(
    counters: Counters,
    edge_board_ns: Int64Array,
    unlikely: Callable[[list[Float64Array]], float],
    work: Intervals | None = None,
) -> list[MediumColumns]:
    """The columns of the medium with the lag and the tail that explain the windows best, and others as good as that.

    What the data do not tell of lag, tail and the moments between two samples is then seen in what the others would
    have given.

    Args:
        unlikely: minus twice the logarithm of the windows' likelihood with some columns of the medium.
        work: of the engine, which may have written most of what went between two samples.
    """
    read_ns = counters.board_ns[
        (counters.board_ns > edge_board_ns[0]) & (counters.board_ns < edge_board_ns[-1])
    ]
    moment_ns = _joined(edge_board_ns, read_ns)
    first = np.searchsorted(moment_ns, edge_board_ns[:-1])
    written = counters.at(moment_ns)
    if written[-1] <= written[0]:
        nothing = np.zeros(first.size)
        return [MediumColumns(nothing, nothing, None, None)]
    search = _Search(written, (moment_ns - moment_ns[0]) * NS, first, unlikely, WITH_WORK[0] if work else 0.0)
    best = min(search.best(tails=False), search.best(tails=True), key=_value)
    by_place = {search.with_work: search}
    if work:
        moved = counters.at_work(moment_ns, work) - written
        by_place |= {
            part: replace(search, written=written + part * moved, with_work=part) for part in WITH_WORK
        }
        best = min(best, *(by_place[part].best_beside(best) for part in WITH_WORK), key=_value)
    return [by_place[each.with_work].columns(each) for each in (best, *search.as_good_as(best))]


class _Tried(NamedTuple):
    """A lag and a tail, and how unlikely the windows are with them."""

    value: float
    drain_bytes_per_s: float | None
    tail_length_s: float | None
    with_work: float


def _value(tried: _Tried) -> float:
    return tried.value


@dataclass(frozen=True)
class _Search:
    """Lag and tail by a coarse grid, then ever finer around the best."""

    written: Float64Array
    """Bytes by each moment at which a window ends or the counters were read, shape (m,)."""
    time_s: Float64Array
    """shape (m,)"""
    first: npt.NDArray[np.intp]
    """The moment at which each window begins, shape (n,)."""
    unlikely: Callable[[list[Float64Array]], float]
    usual: float
    """The part of the bytes with the engine's work that needs no proof."""
    with_work: float = 0.0
    tried: list[_Tried] = field(default_factory=list)

    def as_good_as(self, best: _Tried) -> list[_Tried]:
        """Some of what was tried and is not clearly worse, from the best of them to the worst.

        Of bytes placed otherwise between two samples the best each, however likely: where they went was not seen, and
        parts that rest on it are uncertain by that.
        """
        tried = sorted(self.tried, key=lambda each: each.value - self._worth(each))
        limit, placed = best.value - self._worth(best) + WORTH, best.with_work
        alike = [
            each
            for each in tried
            if each.with_work == placed and each.value - self._worth(each) <= limit and each is not best
        ]
        otherwise = {each.with_work: each for each in reversed(tried) if each.with_work != placed}
        return [*alike[:: max(len(alike) // OTHERS, 1)], *otherwise.values()]

    def best_beside(self, known: _Tried) -> _Tried:
        """What explains the windows best with a tail that is known: only the rate is sought."""
        mean, steepest = _mean_and_steepest(self.written, self.time_s)
        rates = [None, known.drain_bytes_per_s, *np.geomspace(mean, steepest, RATES + 1)[:-1].tolist()]
        found, ratio = self._of_grid(rates, [known.tail_length_s]), (steepest / mean) ** (1 / RATES)
        for _ in range(ROUNDS):
            finer = self._of_grid(_around(found.drain_bytes_per_s, ratio), [known.tail_length_s])
            found, ratio = min(found, finer, key=_value), ratio ** (1 / FINE)
        return found

    def best(self, *, tails: bool) -> _Tried:
        """What explains the windows best, and how unlikely they are with it."""
        mean, steepest = _mean_and_steepest(self.written, self.time_s)
        longest_s = max(min(float(np.ptp(self.time_s)) / 2, TAIL_MAX_S), 1.01 * TAIL_MIN_S)
        rates = [None, *np.geomspace(mean, steepest, RATES + 1)[:-1].tolist()]
        lengths_s = np.geomspace(TAIL_MIN_S, longest_s, TAILS).tolist() if tails else [None]
        of_rate, of_length = (steepest / mean) ** (1 / RATES), (longest_s / TAIL_MIN_S) ** (1 / TAILS)
        found = self._of_grid(rates, lengths_s)
        for _ in range(ROUNDS):
            rates = _around(found.drain_bytes_per_s, of_rate)
            nearer_s = _around(found.tail_length_s, of_length)
            # a rate that was wrong may have hidden the right length: all lengths again beside those near the best
            finer = self._of_grid(rates, [*nearer_s, *lengths_s] if tails else nearer_s)
            found = min(found, finer, key=_value)
            of_rate, of_length = of_rate ** (1 / FINE), of_length ** (1 / FINE)
        return found

    def columns(self, tried: _Tried) -> MediumColumns:
        """The columns of a lag and a tail."""
        column = self._drained(tried.drain_bytes_per_s)
        written = np.add.reduceat(column, self.first)
        tail_s = np.zeros(written.size)
        if tried.tail_length_s is not None:
            tail_s = np.add.reduceat(Pauses.of(column, self.time_s).tail_s(tried.tail_length_s), self.first)
        return MediumColumns(written, tail_s, tried.drain_bytes_per_s, tried.tail_length_s, tried.with_work)

    def _drained(self, rate: float | None) -> Float64Array:
        return np.diff(self.written if rate is None else drained(self.written, self.time_s, rate))

    def _of_grid(self, rates: Sequence[float | None], lengths_s: Sequence[float | None]) -> _Tried:
        made = []
        for rate in rates:
            column = self._drained(rate)
            own = [np.add.reduceat(column, self.first)]
            pauses = Pauses.of(column, self.time_s)
            for length_s in lengths_s:
                tail = [] if length_s is None else [np.add.reduceat(pauses.tail_s(length_s), self.first)]
                found = _Tried(0.0, rate, length_s, self.with_work)
                made.append(found._replace(value=self.unlikely([*own, *tail]) + self._worth(found)))
        self.tried.extend(made)
        return min(made, key=_value)

    def _worth(self, tried: _Tried) -> float:
        late, tail = tried.drain_bytes_per_s is not None, tried.tail_length_s is not None
        return WORTH * (late + tail + (tried.with_work != self.usual))


def _joined(one_ns: Int64Array, other_ns: Int64Array) -> Int64Array:
    """The moments of two that are in order of time, each once; numpy's own union hashes them first."""
    both_ns = np.sort(np.concatenate([one_ns, other_ns]), kind="stable")
    return both_ns[np.diff(both_ns, prepend=both_ns[0] - 1) > 0]


def _around(value: float | None, step: float) -> list[float | None]:
    """Values within one step on either side of the best so far."""
    if value is None:
        return [None]
    return [*(value * np.geomspace(1 / step, step, 2 * FINE + 1)).tolist()]


def _mean_and_steepest(written: Float64Array, time_s: Float64Array) -> tuple[float, float]:
    mean = float(written[-1] - written[0]) / float(time_s[-1] - time_s[0])
    return mean, max(float(np.max(np.diff(written) / np.diff(time_s))), 1.01 * mean)


@dataclass(frozen=True)
class Pauses:
    """The windows of some in which nothing is written."""

    place: npt.NDArray[np.intp]
    """Which they are, shape (m,); those before the first write are left out."""
    ended_s: Float64Array
    """When the last window with a write before each ended, shape (m,)."""
    time_s: Float64Array
    """Edges of all windows, shape (n + 1,)."""

    @classmethod
    def of(cls, written_bytes: Float64Array, time_s: Float64Array) -> Pauses:
        """Of windows with the bytes that are written in each, shape (n,)."""
        writes = written_bytes > _STILL_BYTES_PER_S * np.diff(time_s)
        ended_s = np.maximum.accumulate(np.where(writes, time_s[1:], -np.inf))
        place = np.flatnonzero(~writes & (ended_s > -np.inf))
        return cls(place, ended_s[place], time_s)

    def tail_s(self, length_s: float) -> Float64Array:
        """Seconds of each window in which the medium's tail may go on, shape (n,).

        It begins when nothing was written for TAIL_BEGINS_S, and ends `length_s` after the last write.
        """
        begins_s, ends_s = self.ended_s + TAIL_BEGINS_S, self.ended_s + length_s
        ended_s = np.minimum(ends_s, self.time_s[self.place + 1])
        found = np.zeros(self.time_s.size - 1)
        found[self.place] = np.maximum(ended_s - np.maximum(begins_s, self.time_s[self.place]), 0.0)
        return found
