"""What the storage medium did in each window: bytes that went to it, late, and the time it works on after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

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
"""Parts of the bytes between two samples that are tried as gone during the engine's own work there."""
WORTH: Final = 10.0
"""A lag, a tail or bytes that went with the engine's work are believed where that lowers minus twice the logarithm of
the likelihood by this, or more."""


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
        moment_ns = np.union1d(edge_board_ns, self.board_ns)
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
    written = counters.at(edge_board_ns)
    time_s = (edge_board_ns - edge_board_ns[0]) * NS
    if written[-1] <= written[0]:
        nothing = np.zeros(edge_board_ns.size - 1)
        return [MediumColumns(nothing, nothing, None, None)]
    search = _Search(written, time_s, unlikely)
    best = min(search.best(tails=False), search.best(tails=True), key=lambda each: each[1])
    if work is not None:
        moved = counters.at_work(edge_board_ns, work) - written
        placed = [
            replace(search, written=written + part * moved, with_work=part).best_beside(best[0])
            for part in WITH_WORK
        ]
        best = min(best, *placed, key=lambda each: each[1])
    return [best[0], *search.as_good_as(best)]


@dataclass(frozen=True)
class _Search:
    """Lag and tail by a coarse grid, then ever finer around the best."""

    written: Float64Array
    time_s: Float64Array
    unlikely: Callable[[list[Float64Array]], float]
    with_work: float = 0.0
    tried: list[tuple[MediumColumns, float]] = field(default_factory=list)

    def as_good_as(self, best: tuple[MediumColumns, float]) -> list[MediumColumns]:
        """Some of what was tried and is not clearly worse, from the best of them to the worst.

        Of bytes placed otherwise between two samples the best each, however likely: where they went was not seen, and
        parts that rest on it are uncertain by that.
        """
        tried = sorted(self.tried, key=lambda each: each[1] - _worth(each[0]))
        limit, placed = best[1] - _worth(best[0]) + WORTH, best[0].with_work
        alike = [
            each for each, value in tried
            if each.with_work == placed and value - _worth(each) <= limit and each is not best[0]
        ]  # fmt: skip
        otherwise = {each.with_work: each for each, _ in reversed(tried) if each.with_work != placed}
        return [*alike[:: max(len(alike) // OTHERS, 1)], *otherwise.values()]

    def best_beside(self, known: MediumColumns) -> tuple[MediumColumns, float]:
        """What explains the windows best with a tail that is known: only the rate is sought."""
        mean, steepest = _mean_and_steepest(self.written, self.time_s)
        rates = [None, known.drain_bytes_per_s, *np.geomspace(mean, steepest, RATES + 1)[:-1].tolist()]
        found, ratio = self._of_grid(rates, [known.tail_length_s]), (steepest / mean) ** (1 / RATES)
        for _ in range(ROUNDS):
            finer = self._of_grid(_around(found[0].drain_bytes_per_s, ratio), [known.tail_length_s])
            found, ratio = min(found, finer, key=lambda each: each[1]), ratio ** (1 / FINE)
        return found

    def best(self, *, tails: bool) -> tuple[MediumColumns, float]:
        """What explains the windows best, and how unlikely they are with it."""
        mean, steepest = _mean_and_steepest(self.written, self.time_s)
        longest_s = max(min(float(np.ptp(self.time_s)) / 2, TAIL_MAX_S), 1.01 * TAIL_MIN_S)
        rates = [None, *np.geomspace(mean, steepest, RATES + 1)[:-1].tolist()]
        lengths_s = np.geomspace(TAIL_MIN_S, longest_s, TAILS).tolist() if tails else [None]
        of_rate, of_length = (steepest / mean) ** (1 / RATES), (longest_s / TAIL_MIN_S) ** (1 / TAILS)
        found = self._of_grid(rates, lengths_s)
        for _ in range(ROUNDS):
            rates = _around(found[0].drain_bytes_per_s, of_rate)
            nearer_s = _around(found[0].tail_length_s, of_length)
            # a rate that was wrong may have hidden the right length: all lengths again beside those near the best
            finer = self._of_grid(rates, [*nearer_s, *lengths_s] if tails else nearer_s)
            found = min(found, finer, key=lambda each: each[1])
            of_rate, of_length = of_rate ** (1 / FINE), of_length ** (1 / FINE)
        return found

    def _of_grid(
        self, rates: Sequence[float | None], lengths_s: Sequence[float | None]
    ) -> tuple[MediumColumns, float]:
        made = []
        for rate in rates:
            left = self.written if rate is None else drained(self.written, self.time_s, rate)
            column = np.diff(left)
            for length_s in lengths_s:
                tail = (
                    np.zeros_like(column)
                    if length_s is None
                    else after_writing(column, self.time_s, length_s)
                )
                own = [column] if length_s is None else [column, tail]
                found = MediumColumns(column, tail, rate, length_s, self.with_work)
                made.append((found, self.unlikely(own) + _worth(found)))
        self.tried.extend(made)
        return min(made, key=lambda each: each[1])


def _worth(columns: MediumColumns) -> float:
    late, tail = columns.drain_bytes_per_s is not None, columns.tail_length_s is not None
    return WORTH * (late + tail + (columns.with_work > 0))


def _around(value: float | None, step: float) -> list[float | None]:
    """Values within one step on either side of the best so far."""
    if value is None:
        return [None]
    return [*(value * np.geomspace(1 / step, step, 2 * FINE + 1)).tolist()]


def _mean_and_steepest(written: Float64Array, time_s: Float64Array) -> tuple[float, float]:
    mean = float(written[-1] - written[0]) / float(time_s[-1] - time_s[0])
    return mean, max(float(np.max(np.diff(written) / np.diff(time_s))), 1.01 * mean)


def after_writing(written_bytes: Float64Array, time_s: Float64Array, length_s: float) -> Float64Array:
    """Seconds of each window in which the medium's tail may go on, shape (n,).

    It begins when nothing was written for TAIL_BEGINS_S, and ends `length_s` after the last write.

    Args:
        written_bytes: of each window, shape (n,).
        time_s: edges of the windows, shape (n + 1,).
    """
    writes = written_bytes > _STILL_BYTES_PER_S * np.diff(time_s)
    ended_s = np.maximum.accumulate(np.where(writes, time_s[1:], -np.inf))
    begins_s, ends_s = ended_s + TAIL_BEGINS_S, ended_s + length_s
    inside_s = np.minimum(ends_s, time_s[1:]) - np.maximum(begins_s, time_s[:-1])
    return np.where(writes, 0.0, np.clip(np.nan_to_num(inside_s, neginf=0.0), 0.0, None))
